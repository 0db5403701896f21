"""The page below ``/ui/``, and what leads there: ``/``, and the links that Determined's users have kept.

Rules it keeps:

- a file is sent to anyone: the page holds no secret, and shows nothing before whoever looks at it is logged in;
- an address that is no file is the page's own where a browser goes to it, and 404 for whatever else asks for it, so
  that a missing script is never answered with a page;
- where no page was built, ``/ui/`` says how to build one, and all of the API goes on;
- all redirects are relative, so that they hold behind a proxy that serves the master below a prefix.
"""

from __future__ import annotations

from html import escape
from urllib.parse import quote

import anyio.to_thread
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from tenax.errors import NotFound
from tenax.master.access.authorization import Allow
from tenax.master.api.http.routing import Routes
from tenax.master.api.web.built import ASK_AGAIN, BuiltPage, WebPage, answer
from tenax.master.api.web.links import equal_of

routes = Routes("Web")

#: What ``/ui/`` says where there is no page.
NOT_BUILT = (
    "The web page of this master was not built, so only its API and the command line can be used. "
    "In a checkout of the sources, run: make web"
)


@routes.get("/", "WebRoot", allow=Allow.PUBLIC, response_class=Response)
async def root() -> Response:
    """To the page."""
    return _redirect("ui/")


@routes.get("/ui", "WebDirectory", allow=Allow.PUBLIC, response_class=Response)
async def directory() -> Response:
    """To the page, whose address ends in a slash."""
    return _redirect("ui/")


@routes.get("/ui/{path:path}", "WebPage", allow=Allow.PUBLIC, response_class=Response)
async def page(request: Request, path: str) -> Response:
    """A file of the page, or the page itself for an address that a browser goes to; 503 where none was built."""
    accepted, known = request.headers.get("accept-encoding", ""), request.headers.get("if-none-match", "")
    kept = _page(request).kept_file(path)
    if kept is not None:
        return answer(*kept, accepted, known)
    built = await _built(request)
    navigates = path == "" or "text/html" in request.headers.get("accept", "")
    if built is None:
        if navigates:
            return _not_built()
        raise NotFound(NOT_BUILT)
    file = built.files.get(path)
    if file is None:
        # A slash that is written as %2F is none to the browser: the page would look for its files above its own place.
        if not navigates or b"%2f" in request.scope.get("raw_path", b"").lower():
            raise NotFound(f"file {path!r} of the web page not found")
        file = built.index(path.count("/"))
    return answer(built, file, accepted, known)


@routes.get("/det", "DeterminedRoot", allow=Allow.PUBLIC, response_class=Response)
async def determined_root() -> Response:
    """To the page."""
    return _redirect("ui/")


@routes.get("/det/{path:path}", "DeterminedLink", allow=Allow.PUBLIC, response_class=Response)
async def determined_link(path: str) -> Response:
    """To what Determined's page had at this address; where there is no equal, the page says so."""
    return _redirect("../" * (path.count("/") + 1) + "ui/" + equal_of(path))


def _page(request: Request) -> WebPage:
    page: WebPage = request.app.state.web_page
    return page


async def _built(request: Request) -> BuiltPage | None:
    return await anyio.to_thread.run_sync(_page(request).read)


def _redirect(target: str) -> Response:
    safe = quote(target, safe="/?=&")
    return JSONResponse(
        {"message": f"this is now at {safe}"}, status_code=302, headers={"Location": safe, "Cache-Control": ASK_AGAIN}
    )


def _not_built() -> Response:
    text = escape(NOT_BUILT)
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Tenax</title><h1>No web page</h1><p>{text}</p>",
        status_code=503,
        headers={"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'"},
    )
