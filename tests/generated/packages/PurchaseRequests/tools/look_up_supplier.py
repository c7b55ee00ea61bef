"""Looks suppliers up."""

from weft import Context


async def look_up_supplier(context_variables: Context) -> dict[str, object]:
    """Return the supplier of the item."""
    supplier = await context_variables.refresh("supplier")
    return {"supplier": supplier or "none"}
