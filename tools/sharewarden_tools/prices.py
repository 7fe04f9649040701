"""What an instance costs an hour, as the admin says: Sharewarden brings no prices of its own."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from sharewarden.domain.base import Frozen
from sharewarden.domain.stored import HOUR
from sharewarden.domain.usage import Usage

from .policy.problems import BadFile
from .policy.reading import read
from .policy.yaml_text import read_file
from .template import TEMPLATE

#: A file that shows the form; its numbers are nobody's prices.
EXAMPLE = TEMPLATE.parent / "examples" / "prices.EXAMPLE.yaml"
SCHEMA = TEMPLATE.parent / "examples" / "prices.schema.json"


def _a_day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ValueError(f"{text!r} is not a day: write for example 2026-11-30") from error


class Prices(Frozen):
    """One price list."""

    currency: str = Field(pattern=r"^[A-Z]{3}$", description="ISO 4217 code, such as USD.")
    source: str = Field(min_length=1, description="Where the prices are from: a contract, a price list.")
    date: Annotated[str, AfterValidator(_a_day)] = Field(
        description="The day on which they were looked up: 2026-11-30.", json_schema_extra={"format": "date"}
    )
    per_instance_hour: dict[str, Annotated[float, Field(ge=0)]] = Field(
        min_length=1, description="Price of one instance for an hour, by SageMaker instance type."
    )


class Cost(Frozen):
    """``amount`` covers the types that have a price; ``unpriced`` names the others that were used."""

    amount: Decimal
    currency: str
    unpriced: tuple[str, ...] = ()


def load_prices(path: Path) -> Prices:
    """Raises OSError, and BadFile with everything that is wrong and where."""
    prices, problems = read(read_file(path), Prices)
    if prices is None:
        raise BadFile(str(path), problems)
    return prices


def cost(usage: Usage, prices: Prices) -> Cost:
    """The instance time of all types at their price, to the hundredth of the currency's unit."""
    priced = prices.per_instance_hour
    amount = sum(
        (Decimal(str(priced[unit])) * time.total for unit, time in usage.units.items() if unit in priced),
        Decimal(0),
    )
    unpriced = tuple(unit or "(no type)" for unit in usage.units if unit not in priced)
    hundredth = Decimal("0.01")
    return Cost(amount=(amount / HOUR).quantize(hundredth), currency=prices.currency, unpriced=unpriced)


def prices_schema() -> dict[str, Any]:
    """The form of a price list as JSON Schema, for editors."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Prices for sharewarden usage",
    }
    return head | {key: value for key, value in Prices.model_json_schema().items() if key != "title"}
