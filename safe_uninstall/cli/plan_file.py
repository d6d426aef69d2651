"""Plans that were saved: read back, and held against what is planned now for the same request."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import SafeUninstallError, StalePlan, UsageError
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.plan import PROBE_TIMEOUT, Code, Request, Rewrite, Severity
from safe_uninstall.render.document import FORMAT_VERSION, plan_document

if TYPE_CHECKING:
    from safe_uninstall.model.plan import Plan

_FORMAT = "safe-uninstall/plan"
_ANEW = ("make the plan anew, review it, and apply that one",)


class EditedPlan(SafeUninstallError):
    """A saved plan does not say what is planned for its own request."""

    slug = "edited-plan"
    exit_status = ExitStatus.USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A plan as it was reviewed."""

    path: str
    document: Mapping[str, Any]

    @property
    def prefix(self) -> str:
        """The environment that it was made for."""
        prefix: str = self.document["environment"]["prefix"]
        return prefix

    def request(self, **more: Any) -> Request:
        """Return the request that it was made for.

        Args:
            more: fields of ``Request`` that belong to this run and not to the plan.
        """
        asked = self.document["request"]
        installer = asked.get("installer")
        return Request(
            names=tuple(asked["names"]),
            rewrites=tuple(Rewrite(name) for name in asked["rewrites"]),
            install=tuple(asked["install"]),
            accepted_losses=tuple(asked["accepted_losses"]),
            repair=asked.get("repair", False),
            undo=asked.get("undo"),
            use_library_path=asked.get("use_library_path", False),
            consumers_in=tuple(asked.get("consumers_in", ())),
            break_system_packages=asked.get("break_system_packages", False),
            refuse_in_use=asked.get("refuse_in_use", False),
            probes=tuple(asked.get("probes", ())),
            probe_timeout=asked.get("probe_timeout", PROBE_TIMEOUT),
            installer=None if installer is None else InstallerKind(installer),
            **more,
        )

    def gone(self, names: tuple[str, ...], installed: Collection[str]) -> StalePlan:
        """Return the error for a request whose names lead to nothing any more.

        Args:
            names: names and globs of the request that nothing bears.
            installed: normalised names of what there is.
        """
        told = (item["distribution"] for item in self.document["actions"] if item.get("kind") == "uninstall")
        left = [f"{item['name']} {item['version']}" for item in told if item["name"] not in installed]
        return StalePlan(tuple(f"{label} is not installed any more" for label in left or names), help=_ANEW)

    def refuse_unless_same(self, plan: Plan, tool_version: str) -> None:
        """Hold what is planned now against what was reviewed.

        Raises:
            StalePlan: the environment is another one by now; says what changed.
            EditedPlan: the environment is the same, and the plan says something else.
        """
        if plan.fingerprint != self.document["environment"]["fingerprint"]:
            from safe_uninstall.analysis.fingerprint import describe_changes

            before = tuple(sorted(self.document.get("fingerprint_parts", {}).items()))
            changes = describe_changes(before, plan.fingerprint_parts) if before else ()
            raise StalePlan(changes or ("its fingerprint is another one",), help=_ANEW)
        if any(item.code is Code.IN_USE and item.severity is Severity.ERROR for item in plan.findings):
            # What runs is no part of the environment: the plan that blocks by now says so itself.
            return
        now = plan_document(plan, tool_version)
        for part in ("verdict", "actions", "wheels"):
            if _essence(now[part]) != _essence(self.document.get(part, now[part])):
                raise EditedPlan(f"`{self.path}` is not what is planned for its own request: other {part}", help=_ANEW)


def read_plan(path: str) -> SavedPlan:
    """Read a plan that ``-o`` saved; ``-`` stands for standard input.

    Raises:
        UsageError: there is no such file, or it is no plan, or one of a newer format.
    """
    try:
        if path == "-":
            path = "standard input"
            document = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be read: {error.strerror}", help=("save a plan first: safe-uninstall -n -o PLAN.json …",)
        ) from None
    except ValueError as error:
        raise UsageError(f"`{path}` is not JSON: {error}", help=("save a plan anew, with -o",)) from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise UsageError(f"`{path}` is not a plan of safe-uninstall", help=("save a plan with -o, and apply that",))
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise UsageError(
            f"`{path}` has format version {version}, and this safe-uninstall knows {FORMAT_VERSION}",
            help=(f"apply it with the version that wrote it: {document.get('tool_version')}",),
        )
    saved = SavedPlan(path=path, document=document)
    try:
        saved.request()
        for key in ("prefix", "fingerprint"):
            if not isinstance(document["environment"][key], str):
                raise TypeError(key)
        if not isinstance(document["actions"], list):
            raise TypeError("actions")
        saved.gone((), ())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"`{path}` is not a whole plan: {error}", help=("save a plan anew, with -o",)) from None
    return saved


def _essence(value: Any) -> Any:
    """Return what of a document's part is decided, and not merely said."""
    if not isinstance(value, list):
        return value
    said = ("reason", "source", "bytes")
    return [{key: held for key, held in item.items() if key not in said} for item in value]
