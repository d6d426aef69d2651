"""Finds the distributions of an environment and reads their metadata, statically."""

import os
import posixpath
import re
from dataclasses import replace

from safe_uninstall.model.distribution import (
    Distribution,
    MetadataKind,
    Record,
    RecordState,
)
from safe_uninstall.model.environment import Environment
from safe_uninstall.model.filesystem import DIRECTORY
from safe_uninstall.model.names import normalize_name
from safe_uninstall.scan.conda import CondaPackage, dist_infos, read_conda_packages
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.metadata import parse_direct_url, parse_headers, parse_scripts, read_text
from safe_uninstall.scan.record import make_record, read_record
from safe_uninstall.scan.skeleton import is_skeleton, shield

_EGG_PYTHON = re.compile(r"-py\d+(\.\d+)?$")


def read_distributions(
    environment: Environment, disk: DiskFileSystem
) -> tuple[tuple[Distribution, ...], tuple[str, ...], tuple[str, ...]]:
    """Read all distributions that the environment's interpreter sees.

    Returns:
        The distributions, sorted by name and metadata path; the ``~``-prefixed leftovers of failed pip runs,
        absolute and sorted; and what could not be read, in words.
    """
    reader = _Reader(environment, disk)
    found: list[Distribution] = []
    leftovers: list[str] = []
    for site in environment.site_packages:
        distributions, remains = reader.read_site(site, owned_here=True)
        found += distributions
        leftovers += remains
    found += reader.read_conda()
    developed = {item.name for item in found if _is_development_install(item)}
    for site in environment.visible_site_packages:
        # The egg-info in the source tree of a development install is that very project once more.
        found += [item for item in reader.read_site(site, owned_here=False)[0] if item.name not in developed]
    found.sort(key=lambda item: (item.name, item.metadata_path))
    return tuple(found), tuple(sorted(leftovers)), tuple(reader.problems)


def _is_development_install(item: Distribution) -> bool:
    editable = item.direct_url is not None and item.direct_url.editable
    return editable or item.metadata_kind is MetadataKind.EGG_LINK


class _Reader:
    def __init__(self, environment: Environment, disk: DiskFileSystem) -> None:
        self._environment = environment
        self._disk = disk
        self.problems: list[str] = []
        self._conda: dict[str, CondaPackage] = {}
        self._conda_only: list[CondaPackage] = []
        if disk.entry(environment.prefix, "conda-meta") is DIRECTORY:
            packages, problems = read_conda_packages(environment.prefix, disk)
            self.problems += problems
            for package in packages:
                infos = dist_infos(package, environment.prefix)
                for path in infos:
                    self._conda[disk.real_directory(path) or path] = package
                # Where pip has taken the place of what conda installed, conda's list is history.
                if package.files and not infos:
                    self._conda_only.append(package)

    def read_conda(self) -> list[Distribution]:
        """Return the conda packages that have no Python metadata: survivors always, never removed."""
        return [
            Distribution(
                name=normalize_name(package.name),
                version=package.version,
                metadata_path=package.path,
                metadata_kind=MetadataKind.CONDA,
                site_packages=self._environment.site_packages[0],
                record=self._conda_record(package),
                owned_here=False,
                installer="conda",
                conda_package=package.label,
            )
            for package in self._conda_only
        ]

    def read_site(self, site: str, *, owned_here: bool) -> tuple[list[Distribution], list[str]]:
        """Read one site-packages directory: its distributions, and the leftovers in it."""
        names = self._disk.names(site)
        if site in self._disk.forbidden:
            self.problems.append(f"cannot list {site}: {self._disk.forbidden[site]}")
        found = []
        leftovers = []
        for name in names:
            if name.startswith("~"):
                leftovers.append(posixpath.join(site, name))
            elif name.endswith(".dist-info"):
                found.append(self._dist_info(site, name, owned_here))
            elif name.endswith(".egg-info"):
                found.append(self._egg_info(site, name, owned_here))
            elif name.endswith(".egg-link"):
                found.append(self._egg_link(site, name, owned_here))
        return found, leftovers

    def _dist_info(self, site: str, name: str, owned_here: bool) -> Distribution:
        path = posixpath.join(site, name)
        conda = self._conda.get(path)
        record = read_record(path, site, self._boundary(site, owned_here), self._disk)
        if conda is not None:
            record = self._with_conda(record, conda)
        elif owned_here:
            record = shield(record, self._environment, site)
        unknown = record.state in (RecordState.MISSING, RecordState.MALFORMED)
        direct_url = self._text(path, "direct_url.json")
        scripts = self._text(path, "entry_points.txt")
        return self._distribution(
            path,
            headers_text=self._text(path, "METADATA"),
            fallback=name[: -len(".dist-info")],
            kind=MetadataKind.DIST_INFO,
            site=site,
            record=record,
            owned_here=owned_here,
            conda=conda,
            installer=self._text(path, "INSTALLER"),
            requested="REQUESTED" in self._disk.names(path),
            direct_url=direct_url,
            scripts=scripts,
            top_level=self._text(path, "top_level.txt") if unknown else None,
        )

    def _egg_info(self, site: str, name: str, owned_here: bool) -> Distribution:
        """Read an egg-info: a directory with PKG-INFO, or the PKG-INFO itself."""
        path = posixpath.join(site, name)
        conda = self._conda.get(path)
        directory = self._disk.names(site)[name] is DIRECTORY
        if conda is not None:
            record = self._conda_record(conda)
        elif directory:
            record = self._installed_files(path, site, owned_here)
        else:
            # distutils wrote no list of files at all.
            record = Record(state=RecordState.MISSING)
        return self._distribution(
            path,
            headers_text=self._text(path, "PKG-INFO") if directory else read_text(self._disk.location(path)),
            fallback=_EGG_PYTHON.sub("", name[: -len(".egg-info")]),
            kind=MetadataKind.EGG_INFO,
            site=site,
            record=record,
            owned_here=owned_here,
            conda=conda,
            scripts=self._text(path, "entry_points.txt") if directory else None,
        )

    def _egg_link(self, site: str, name: str, owned_here: bool) -> Distribution:
        """Read an egg-link: its first line is the directory of a source tree under development."""
        path = posixpath.join(site, name)
        target = (read_text(self._disk.location(path)) or "").partition("\n")[0].strip()
        text = None
        if target.startswith("/"):
            for candidate in self._disk.names(target):
                if candidate.endswith(".egg-info"):
                    text = self._text(posixpath.join(target, candidate), "PKG-INFO")
        return self._distribution(
            path,
            headers_text=text,
            fallback=name[: -len(".egg-link")],
            kind=MetadataKind.EGG_LINK,
            site=site,
            record=Record(state=RecordState.MISSING),
            owned_here=owned_here,
            conda=None,
        )

    def _distribution(
        self,
        path: str,
        *,
        headers_text: str | None,
        fallback: str,
        kind: MetadataKind,
        site: str,
        record: Record,
        owned_here: bool,
        conda: CondaPackage | None,
        installer: str | None = None,
        requested: bool = False,
        direct_url: str | None = None,
        scripts: str | None = None,
        top_level: str | None = None,
    ) -> Distribution:
        headers = parse_headers(headers_text) if headers_text is not None else {}
        problems = []
        if headers_text is None:
            problems.append(f"{posixpath.basename(path)} has no metadata that can be read")
        # Names in file names hold no "-": what follows the last one is the version.
        name, _, version = fallback.partition("-")
        name = (headers.get("name") or [name])[0]
        version = (headers.get("version") or [version])[0]
        url = None
        if direct_url is not None:
            url = parse_direct_url(direct_url)
            if url is None:
                problems.append("direct_url.json is not what PEP 610 describes")
        return Distribution(
            name=normalize_name(name),
            version=version.strip() or "unknown",
            metadata_path=path,
            metadata_kind=kind,
            site_packages=site,
            record=record,
            owned_here=owned_here,
            installer=(installer or "").strip() or None,
            requested=requested,
            direct_url=url,
            requires=tuple(headers.get("requires-dist", ())),
            provides_extra=tuple(headers.get("provides-extra", ())),
            requires_python=next(iter(headers.get("requires-python", ())), None),
            top_level=tuple((top_level or "").split()),
            scripts=tuple(
                path
                for script in parse_scripts(scripts or "")
                if not is_skeleton(path := posixpath.join(self._environment.scripts, script), self._environment)
            ),
            conda_package=None if conda is None else conda.label,
            problems=tuple(problems),
        )

    def _text(self, directory: str, name: str) -> str | None:
        if name not in self._disk.names(directory):
            return None
        return read_text(self._disk.location(posixpath.join(directory, name)))

    def _boundary(self, site: str, owned_here: bool) -> str:
        """Return the directory that rows may not leave; what is only visible has a prefix that nobody knows here."""
        return self._environment.prefix if owned_here else site

    def _with_conda(self, record: Record, package: CondaPackage) -> Record:
        """Return what conda lists; it takes that away, and RECORD only knows what was built."""
        own = self._conda_record(package)
        if record.state is RecordState.MISSING:
            return own
        known = {row.path for row in own.rows}
        return replace(own, rows=(*own.rows, *(row for row in record.rows if row.path not in known)))

    def _conda_record(self, package: CondaPackage) -> Record:
        prefix = self._environment.prefix
        return make_record(
            package.entries,
            (),
            state=RecordState.PRESENT,
            path=package.path,
            site_packages=prefix,
            prefix=prefix,
            disk=self._disk,
            data=package.data,
        )

    def _installed_files(self, path: str, site: str, owned_here: bool) -> Record:
        """Read ``installed-files.txt``, the list that setuptools' old installer left; relative to the egg-info."""
        text = self._text(path, "installed-files.txt")
        if text is None:
            return Record(state=RecordState.MISSING)
        own = posixpath.basename(path)
        entries = [
            (os.path.normpath(posixpath.join(own, line.strip())), "", "") for line in text.splitlines() if line.strip()
        ]
        return make_record(
            entries,
            (),
            state=RecordState.PRESENT,
            path=posixpath.join(path, "installed-files.txt"),
            site_packages=site,
            prefix=self._boundary(site, owned_here),
            disk=self._disk,
            data=text.encode("utf-8", "surrogateescape"),
        )
