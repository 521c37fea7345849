"""Expressions become values here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winready_sandbox.machine.errors import OutOfMemory
from winready_sandbox.pattern_search import Found, PatternError, TooMuch, search
from winready_sandbox.programs import record
from winready_sandbox.programs.powershell import members, operators, statics
from winready_sandbox.programs.powershell.syntax import (
    Argument,
    ArrayLiteral,
    Assignment,
    Binary,
    Call,
    Cast,
    Constant,
    Expandable,
    Expression,
    Group,
    HashLiteral,
    Index,
    Member,
    ScriptBlock,
    Step,
    SubExpression,
    TypeLiteral,
    Unary,
    Value,
    Variable,
)
from winready_sandbox.programs.powershell.types import cast, plain_name, version
from winready_sandbox.programs.powershell.values import (
    ITEM,
    MOST_ITEMS,
    Hash,
    NetArray,
    PowerShellError,
    PSObject,
    fitting,
    to_number,
    to_text,
    truth,
    unrolled,
    whole,
)

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.session import Session


class Parameter(str):
    """`-name` on its way to a function or a program, where it may be no parameter after all."""

    @property
    def parameter(self) -> str:
        """The name without the dash."""
        return str(self)


class Reference:
    """`[ref]$name`: lets a native function write into a variable."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    @property
    def value(self) -> Any:
        """What the variable holds."""
        return self._session.lookup(self._name)

    @value.setter
    def value(self, new: Any) -> None:
        self._session.assign(self._name, new)


class Evaluator:
    """Evaluates expressions in a session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def match(self, left: Any, pattern: Any) -> Any:
        """`-match`, which sets `$Matches`; on a list it picks the items that fit."""
        wanted = to_text(pattern)
        if isinstance(left, list):
            return [item for item in left if await self._matches(to_text(item), wanted)]
        return await self._matches(to_text(left), wanted)

    async def _matches(self, text: str, pattern: str) -> bool:
        going = search(pattern, text, ignore_case=True)
        try:
            while True:
                self.session.pace.work(next(going))
                await self.session.pace.step()
        except StopIteration as ended:
            found: Found | None = ended.value
        except PatternError as error:
            raise PowerShellError(f'parsing "{pattern}" - {error}', "RuntimeException", "ArgumentException") from None
        except TooMuch:
            raise OutOfMemory from None
        if found is None:
            return False
        groups: list[tuple[Any, Any]] = [(index, each) for index, each in enumerate(found.groups) if each is not None]
        named = [(name, each) for name, each in found.names.items() if each is not None]
        self.session.scopes[-1]["matches"] = Hash(iter([*groups, *named]))
        return True

    async def value(self, node: Expression) -> Any:
        """The value of an expression."""
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Expandable):
            return await self._expanded(node)
        if isinstance(node, Variable):
            return self.variable(node.name)
        if isinstance(node, ArrayLiteral):
            return [await self.value(item) for item in node.items]
        if isinstance(node, SubExpression):
            with self.session.account.gathering() as found:
                await self.session.run(node.body, found.append)
            return list(found) if node.array else unrolled(list(found))
        if isinstance(node, Group):
            if isinstance(node.body, Value) and not node.body.redirections:
                return await self.value(node.body.expression)
            if isinstance(node.body, Assignment):
                return await self.assign(node.body)
            return unrolled(await self.session.collect(node.body))
        if isinstance(node, HashLiteral):
            pairs = [
                (await self.value(key), unrolled_value(await self.session.collect(item), item))
                for key, item in node.pairs
            ]
            return Hash(iter(pairs))
        if isinstance(node, ScriptBlock):
            return node
        if isinstance(node, TypeLiteral):
            return node.name
        if isinstance(node, Cast) and node.type == "ref" and isinstance(node.value, Variable):
            return Reference(self.session, node.value.name)
        if isinstance(node, Cast):
            self._note("type", plain_name(node.type))
            return cast(node.type, await self.value(node.value))
        return await self._compound(node)

    async def _expanded(self, node: Expandable) -> str:
        parts: list[str] = []
        size = 0
        for part in node.parts:
            parts.append(part if isinstance(part, str) else to_text(await self.value(part)))
            size += len(parts[-1])
            self.session.account.check(size)
        text: str = self.session.account.made("".join(parts))
        return text

    def _note(self, kind: str, name: str) -> None:
        record.note(self.session.process, kind, name)

    async def _compound(self, node: Member | Call | Index | Unary | Binary | Step) -> Any:
        if isinstance(node, Binary):
            return await self._binary(node)
        if isinstance(node, Unary):
            self._note("operator", node.operator)
            return self._unary(node.operator, await self.value(node.value))
        if isinstance(node, Step):
            old = to_number(await self.value(node.target))
            await self.store(node.target, fitting(old + node.amount))
            return None
        if isinstance(node, Index):
            return self._index(await self.value(node.target), await self.value(node.index))
        name = to_text(await self.value(node.name))
        arguments = [await self.value(each) for each in node.arguments] if isinstance(node, Call) else None
        if isinstance(node.target, TypeLiteral):
            self._note("static", f"{plain_name(node.target.name)}::{name.lower()}")
            return statics.static(self.session, node.target.name, name, arguments or [])
        target = await self.value(node.target)
        if arguments is None:
            return members.get(target, name)
        self._note("method", name.lower())
        return members.call(target, name, arguments)

    async def _binary(self, node: Binary) -> Any:
        self._note("operator", node.operator)
        if node.operator in ("and", "or"):
            left = truth(await self.value(node.left))
            return left if left == (node.operator == "or") else truth(await self.value(node.right))
        left_value, right_value = await self.value(node.left), await self.value(node.right)
        if node.operator == "match":
            return await self.match(left_value, right_value)
        return operators.binary(node.operator, left_value, right_value, self.session.account)

    @staticmethod
    def _unary(operator: str, value: Any) -> Any:
        if operator == "not":
            return not truth(value)
        return -to_number(value) if operator == "-" else to_number(value)

    @staticmethod
    def _index(target: Any, index: Any) -> Any:
        if isinstance(target, Hash):
            return target.get(index)
        if target is None:
            raise PowerShellError("Cannot index into a null array.", "NullArray")
        if isinstance(index, list | range):
            if len(index) > MOST_ITEMS:
                raise OutOfMemory
            return [Evaluator._index(target, each) for each in index]
        if isinstance(target, PSObject):
            return target.get(to_text(index)) if isinstance(index, str) else target
        place = whole(index)
        if isinstance(target, NetArray):
            return target.items.get(place, 0) if -target.length <= place < target.length else None
        if isinstance(target, list | str | range):
            return target[place] if -len(target) <= place < len(target) else None
        return target if place in (0, -1) else None

    async def argument(self, argument: Argument) -> Any:
        """One argument of a function or a program."""
        if argument.parameter and argument.value is None:
            return Parameter(argument.parameter)
        if argument.value is None:
            return None
        return await self.value(argument.value)

    async def assign(self, node: Assignment) -> Any:
        """`$x = ...`, `$x += ...`; the value is that of the right side."""
        if isinstance(node.value, Value) and not node.value.redirections:
            new = await self.value(node.value.expression)
        elif isinstance(node.value, Assignment):
            new = await self.assign(node.value)
        else:
            new = unrolled(await self.session.collect(node.value))
        if node.operator != "=":
            old = await self.value(node.target)
            new = operators.binary(node.operator[:-1], old, new, self.session.account)
        await self.store(node.target, new)
        return new

    async def store(self, target: Expression, value: Any) -> None:
        """Put a value into a variable, a property or an element."""
        if isinstance(target, Variable):
            self.session.assign(target.name, value)
        elif isinstance(target, Member):
            members.set_member(await self.value(target.target), to_text(await self.value(target.name)), value)
        elif isinstance(target, Index):
            holder, index = await self.value(target.target), await self.value(target.index)
            self.session.account.grown(ITEM)
            if isinstance(holder, Hash):
                holder[to_text(index) if isinstance(index, list) else index] = value
            elif isinstance(holder, NetArray):
                holder.items[whole(index)] = value
            elif isinstance(holder, list) and -len(holder) <= whole(index) < len(holder):
                holder[whole(index)] = value
            else:
                raise PowerShellError("Index was outside the bounds of the array.", "IndexOutOfRangeException")

    def variable(self, name: str) -> Any:
        """A variable, automatic ones included."""
        session = self.session
        if name.startswith("env:"):
            return session.process.env.get(name[4:])
        constants = {"true": True, "false": False, "null": None}
        if name in constants:
            return constants[name]
        value = session.lookup(name)
        if value is not None:
            return value
        if name == "?":
            return session.succeeded
        if name == "psversiontable":
            return Hash(
                iter([("PSVersion", version(session.product)), ("PSEdition", "Desktop" if session.desktop else "Core")])
            )
        automatic: dict[str, Any] = {
            "lastexitcode": session.last_native,
            "error": session.errors,
            "erroractionpreference": "Continue",
            "progresspreference": "Continue",
        }
        return automatic.get(name)


def unrolled_value(items: list[Any], statement: Any) -> Any:
    """The value of a hashtable entry: an array literal stays an array."""
    if isinstance(statement, Value) and isinstance(statement.expression, ArrayLiteral | SubExpression):
        return items
    return unrolled(items)
