"""The answer to ``why NAME`` as a tree and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from safe_uninstall.model.linkage import How
from safe_uninstall.render.paths import Relative, relative_to_prefix
from safe_uninstall.render.style import Style, count, escaped

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.plan import DistributionRef
    from safe_uninstall.model.why import Claim, Provider, User, Why

_NAMED = 3
"""Distributions that would lose something, named."""
_USERS = 5
"""Users of one provider shown without ``-v``."""


def render_why(answer: Why, environment: Environment, *, verbose: bool, color: bool) -> str:
    """Return the answer as a tree: provider, whose bytes it holds, who claims it, who needs it and how it is found."""
    style = Style(color=color)
    answer = escaped(answer)
    show = Relative(*escaped((*environment.site_packages, environment.prefix)))
    lines = [style.paint("code", item.label) for item in answer.distributions]
    for item, requirement in answer.requirers:
        lines.append(f"  required by {item.label}   ({requirement})")
    if answer.distributions and not answer.providers:
        lines.append("  no file of another distribution links to a library of it")
    for provider in answer.providers:
        lines += _provider(provider, show, style, verbose)
    for unmet in answer.unmet:
        who = unmet.distribution.label if unmet.distribution is not None else "(unowned)"
        lines.append(f"needed by {who}   {show(unmet.path)}   (not found by the loader alone)")
        if verbose:
            lines += [f"  searched {show(place)}" for place in unmet.searched]
    return "\n".join(lines)


def _provider(provider: Provider, show: Relative, style: Style, verbose: bool) -> list[str]:
    soname = f"   soname {provider.soname}" if provider.soname is not None else ""
    lines = [f"{style.paint('code', show(provider.path))}{soname}"]
    if not provider.claims:
        lines.append("  claimed by nobody")
    lines += [f"  claimed by {claim.distribution.label}{_bytes(claim)}" for claim in provider.claims]
    users = provider.users if verbose else provider.users[:_USERS]
    for user in users:
        who = user.distribution.label if user.distribution is not None else "(unowned)"
        lines.append(f"  needed by {who}   {show(user.path)}{_how(user)}")
    if len(users) < len(provider.users):
        lines.append(f"  … {len(provider.users) - len(users)} more")
    if users:
        lines += _without(provider, show)
    elif provider.soname is not None:
        lines.append("  needed by nothing that the loader finds")
    return lines


def _without(provider: Provider, show: Relative) -> Iterator[str]:
    """Yield what would become of the needs if the file were gone."""
    lost = [user for user in provider.users if user.without is None]
    if lost:
        who = dict.fromkeys("(unowned)" if user.distribution is None else user.distribution.label for user in lost)
        names = [*who][:_NAMED] + ([f"{len(who) - _NAMED} more"] if len(who) > _NAMED else [])
        yield f"  without it {count(len(lost), 'need')} would be lost: {', '.join(names)}"
    others: dict[str, int] = {}
    for user in provider.users:
        if user.without is not None:
            others[user.without] = others.get(user.without, 0) + 1
    for path, number in sorted(others.items()):
        yield f"  without it {count(number, 'need')} would be met by {show(path)}"


def _bytes(claim: Claim) -> str:
    if claim.holds_bytes is None:
        return ""
    return "   (its bytes are on disk)" if claim.holds_bytes else "   (overwritten: other bytes are on disk)"


def _how(user: User) -> str:
    words = {How.RPATH: "RPATH", How.RUNPATH: "RUNPATH", How.LD_LIBRARY_PATH: "LD_LIBRARY_PATH"}
    text = words.get(user.how, user.how.value)
    return f"   ({text} {user.via})" if user.via else f"   ({text})"


def why_document(answers: tuple[Why, ...], environment: Environment, tool_version: str) -> dict[str, Any]:
    """Return answers as a document; paths are relative to the prefix where they are inside it."""
    from safe_uninstall.render.document import FORMAT_VERSION, environment_document

    relative = relative_to_prefix(environment)

    def reference(item: DistributionRef | None) -> dict[str, str] | None:
        return None if item is None else {"name": item.name, "version": item.version}

    return {
        "format": "safe-uninstall/why",
        "format_version": FORMAT_VERSION,
        "tool_version": tool_version,
        "environment": environment_document(environment),
        "answers": [
            {
                "name": answer.name,
                "distributions": [reference(item) for item in answer.distributions],
                "required_by": [
                    {"distribution": reference(item), "requirement": text} for item, text in answer.requirers
                ],
                "providers": [
                    {
                        "path": relative(provider.path),
                        "soname": provider.soname,
                        "claims": [
                            {"distribution": reference(claim.distribution), "holds_bytes": claim.holds_bytes}
                            for claim in provider.claims
                        ],
                        "needed_by": [
                            {
                                "distribution": reference(user.distribution),
                                "path": relative(user.path),
                                "name": user.name,
                                "how": user.how.value,
                                "via": user.via,
                                "without": None if user.without is None else relative(user.without),
                            }
                            for user in provider.users
                        ],
                    }
                    for provider in answer.providers
                ],
                "unmet": [
                    {
                        "distribution": reference(item.distribution),
                        "path": relative(item.path),
                        "searched": relative.each(item.searched),
                    }
                    for item in answer.unmet
                ],
            }
            for answer in answers
        ],
    }
