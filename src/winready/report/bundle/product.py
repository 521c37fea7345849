"""Who hands in what: the description of a product, from options, a file, or asked for."""

from __future__ import annotations

import msgspec


class Product(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is certified, and who stands behind it."""

    vendor: str
    product_name: str
    product_version: str
    contact: str
    website: str = ""
    documentation: str = ""
    description: str = ""


REQUIRED = ("vendor", "product_name", "product_version", "contact")
OPTIONAL = ("website", "documentation", "description")


class ProductError(Exception):
    """The description is not complete or not readable; the message says what to write."""


def read_product(data: bytes, name: str) -> dict[str, str]:
    """Fields from a YAML file."""
    import yaml

    try:
        # Every value as it is written: a version 1.10 is not the number 1.1.
        document = yaml.load(data, Loader=yaml.BaseLoader)  # noqa: S506 - knows nothing but texts, lists and maps
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ProductError(f"{name} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise ProductError(f"{name} must be a map with the keys {', '.join(REQUIRED)}")
    unknown = [str(key) for key in document if key not in (*REQUIRED, *OPTIONAL)]
    if unknown:
        raise ProductError(f"{name}: unknown key {unknown[0]!r}; known are {', '.join((*REQUIRED, *OPTIONAL))}")
    if lists := [key for key, value in document.items() if not isinstance(value, str)]:
        raise ProductError(f"{name}: {lists[0]} must be a text")
    return document


def make_product(fields: dict[str, str]) -> Product:
    """A product from its fields; raises `ProductError` that names what is missing."""
    cleaned = {key: " ".join(value.split()) for key, value in fields.items()}
    missing = [key for key in REQUIRED if not cleaned.get(key)]
    if missing:
        options = ", ".join(f"--{key.replace('_', '-')}" for key in missing)
        raise ProductError(f"the product is not described: give {options}, or a file with --product-file")
    return Product(**cleaned)
