"""The options that say which model answers, the same in every verb that has them."""

from typing import Annotated, TypeAlias

from cyclopts import Parameter

#: The model of a run that begins, or of a fork.
ModelName: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--model",
        metavar="NAME",
        help="Answers for every agent: PROVIDER:MODEL, sample, you, or replay:RUN.",
    ),
]

Seed: TypeAlias = Annotated[
    int, Parameter(name="--seed", help="Another number makes the model sample reply otherwise.")
]
