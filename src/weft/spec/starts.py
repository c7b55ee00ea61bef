"""Starts: how a run of the workflow begins. Files call this `trigger`."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part, Text

InitiatedBy: TypeAlias = Literal["user", "system", "external_event"]


class ChatStart(Part):
    """A person opens a chat."""

    type: Literal["chat"] = "chat"


class FormStart(Part):
    """A person submits a form."""

    type: Literal["form_submit"] = "form_submit"
    form: Name | None = Field(default=None, description="Model the submitted values fit.")


class ScheduleStart(Part):
    """The clock."""

    type: Literal["schedule"] = "schedule"
    cron: Name = Field(description="Five fields: minute hour day month weekday.")
    timezone: Name = "UTC"


class DatabaseStart(Part):
    """A document begins to fit a condition."""

    type: Literal["database_condition"] = "database_condition"
    database: Name | None = Field(default=None, description="null takes the workspace's database.")
    collection: Name
    condition: Text = Field(description="Condition over the fields of the changed document.")


class WebhookStart(Part):
    """Another system posts to us."""

    type: Literal["webhook"] = "webhook"
    path: Name | None = Field(default=None, description="null takes the workflow's name.")


Start: TypeAlias = Annotated[
    ChatStart | FormStart | ScheduleStart | DatabaseStart | WebhookStart,
    Field(discriminator="type"),
]
