"""Writes wheel files: valid by default, each part overridable; and puts them into environments without an installer."""

import csv
import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.environments import Content, EnvironmentBuilder, content_bytes, record_hash

AUTO = "auto"


def write_wheel(
    directory: Path,
    name: str,
    version: str = "1.0",
    files: Mapping[str, Content] | None = None,
    *,
    requires: Iterable[str] = (),
    scripts: Mapping[str, str] | None = None,
    tags: Iterable[str] = ("py3-none-any",),
    metadata: str | None = AUTO,
    record: str | None = AUTO,
    extra_rows: Iterable[str] = (),
    unlisted: Mapping[str, bytes] | None = None,
    file_tag: str | None = None,
) -> Path:
    """Write a wheel and return its path.

    Args:
        directory: where; made if it is not there.
        name: as in the metadata.
        version: likewise.
        files: paths in the archive to contents.
        requires: Requires-Dist.
        scripts: console scripts: name to ``module:function``.
        tags: as WHEEL has them.
        metadata: METADATA, None for none.
        record: RECORD, None for none.
        extra_rows: more rows of RECORD, as text.
        unlisted: more files, which RECORD does not list.
        file_tag: as the file name has it; the first of ``tags`` by default.
    """
    tags = tuple(tags)
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    contents = {path: content_bytes(content) or b"" for path, content in (files or {}).items()}
    if metadata == AUTO:
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
        metadata = "".join([*lines, *(f"Requires-Dist: {item}\n" for item in requires)])
    if metadata is not None:
        contents[f"{info}/METADATA"] = metadata.encode()
    told = "".join(f"Tag: {tag}\n" for tag in tags)
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n{told}".encode()
    if scripts:
        points = "".join(f"{script} = {target}\n" for script, target in scripts.items())
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{points}".encode()
    if record == AUTO:
        rows = [f"{path},{record_hash(data)},{len(data)}" for path, data in contents.items()]
        record = "\n".join([*rows, *extra_rows, f"{info}/RECORD,,", ""])
    if record is not None:
        contents[f"{info}/RECORD"] = record.encode()
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{name.replace('-', '_')}-{version}-{file_tag or tags[0]}.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in {**contents, **(unlisted or {})}.items():
            archive.writestr(path, data)
    return file


def put_wheel(
    builder: EnvironmentBuilder, file: Path, *, installer: str = "pip", metadata: Mapping[str, str] | None = None
) -> Path:
    """Put a wheel into an environment as installers do, over what is there, and return its dist-info directory.

    Args:
        builder: the environment.
        file: a wheel whose files all go into site-packages, or into ``*.data/scripts``.
        installer: what INSTALLER says.
        metadata: more files of the dist-info: name to text.
    """
    with zipfile.ZipFile(file) as archive:
        contents = {item.filename: archive.read(item) for item in archive.infolist()}
    (record,) = (path for path in contents if path.endswith(".dist-info/RECORD"))
    info = record.removesuffix("/RECORD")
    data = info.removesuffix(".dist-info") + ".data/scripts/"
    scripts = "../../../bin/"
    placed = {path.replace(data, scripts): content for path, content in contents.items() if path != record}
    for line in placed.get(f"{info}/entry_points.txt", b"").decode().splitlines()[1:]:
        script, _, target = line.partition(" = ")
        placed[f"{scripts}{script}"] = f"#!{builder.python}\nfrom {target.partition(':')[0]} import main\n".encode()
    placed[f"{info}/INSTALLER"] = f"{installer}\n".encode()
    placed.update((f"{info}/{name}", text.encode()) for name, text in (metadata or {}).items())
    told = io.StringIO()
    writer = csv.writer(told, lineterminator="\n")
    for path, content in placed.items():
        place = builder.site_packages / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_bytes(content)
        writer.writerow([path, record_hash(content), len(content)])
    writer.writerow([record, "", ""])
    (builder.site_packages / record).write_text(told.getvalue())
    return builder.site_packages / info
