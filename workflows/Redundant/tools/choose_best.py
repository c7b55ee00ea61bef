"""Chooses the best of three answers by their marks."""


def choose_best(first: list[int], second: list[int], third: list[int]) -> dict[str, object]:
    """Return the answer with the highest sum of marks, or none if no sum reaches nine.

    Each list holds three marks from 1 to 5: correctness, completeness, clarity.
    """
    sums = {"first": sum(first), "second": sum(second), "third": sum(third)}
    best = max(sums, key=lambda answer: sums[answer])
    return {"best_answer": best if sums[best] >= 9 else "none", "sums": sums}
