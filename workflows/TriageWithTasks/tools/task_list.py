"""The task list: made once, then worked off."""


def plan_tasks(titles: list[str], context_variables) -> dict[str, object]:
    """Write the task list, every task open."""
    tasks = [
        {"number": number, "title": title, "status": "open", "result": ""}
        for number, title in enumerate(titles, 1)
    ]
    context_variables.set("tasks", tasks)
    return {"work_state": "open" if tasks else "unplanned", "tasks": tasks}


def finish_task(number: int, result: str, context_variables) -> dict[str, object]:
    """Store the result of one task and say whether any is still open."""
    tasks = [
        {**task, "status": "done", "result": result} if task["number"] == number else task
        for task in context_variables.get("tasks")
    ]
    context_variables.set("tasks", tasks)
    still_open = [task["number"] for task in tasks if task["status"] == "open"]
    return {"work_state": "open" if still_open else "done", "still_open": still_open}
