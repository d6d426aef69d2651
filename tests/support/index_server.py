"""A package index on this machine, as plain as the specification allows (PEP 503)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Index:
    """What is served, and what was asked for."""

    directory: Path
    """Wheels."""
    address: str = ""
    """Host and port."""
    asked: list[str] = field(default_factory=list)
    """Paths, in order."""
    status: int = 200
    """With which pages are answered."""
    cut_files: bool = False
    """Whether the connection breaks in the middle of a file."""

    @property
    def url(self) -> str:
        """Of the index."""
        return f"http://{self.address}/simple/"

    @property
    def page(self) -> str:
        """URL of a page with links to all wheels."""
        return f"http://{self.address}/all.html"


@contextmanager
def serve(directory: Path) -> Iterator[Index]:
    """Serve the wheels of a directory as long as the context lasts."""
    index = Index(directory)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            parts = self.path.strip("/").split("/")
            if parts[0] == "files":
                self._answer(200, "application/octet-stream", (directory / parts[1]).read_bytes())
                return
            names = [file.name for file in sorted(directory.glob("*.whl"))]
            if parts[0] == "simple":
                names = [name for name in names if name.partition("-")[0].replace("_", "-") == parts[1]]
            links = "".join(f'<a href="/files/{name.replace("+", "%2B")}">{name}</a>\n' for name in names)
            self._answer(index.status if names else 404, "text/html", links.encode())

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=365000000, immutable, public")
            self.end_headers()
            cut = index.cut_files and kind != "text/html"
            self.wfile.write(body[: len(body) // 2] if cut else body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
