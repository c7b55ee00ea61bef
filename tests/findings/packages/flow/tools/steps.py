class Draft:
    pass


class Stylist:
    def system_prompt(self):
        return "You know style."

    def user_prompt(self, state):
        return state.topic


def forget(state, context): ...


def tell(state): ...


def check_facts(state): ...


def join(state, context): ...


def rewrite(state): ...
