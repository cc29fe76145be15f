"""Keeps Dask from opening its web server: nothing listens beyond what is documented."""

from __future__ import annotations

from typing import Any

from distributed.http.routing import RoutingApplication
from tornado.httpserver import HTTPServer


class Unserved:
    """A Dask node without its web server."""

    def start_http_server(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Dask's signature
        """Make what Dask expects to have, and do not listen."""
        self.http_application = RoutingApplication([])
        self.http_server = HTTPServer(self.http_application)
