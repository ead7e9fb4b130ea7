"""The HTTP routes; the work is done in service.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal

from anyio import to_thread
from fastapi import Body, FastAPI, File, Query, Request, Response, UploadFile
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles

from rmsh import __version__
from rmsh.serve.limits import MOST_CONNECTIONS, explain_problems
from rmsh.serve.schemas import About, Duplicates, Facets, Found, Grouping, Id, ItemCodes, Parameters, Parts, Problem
from rmsh.serve.security import COOKIE, Access, Guard
from rmsh.serve.service import MetricsMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from rmsh.serve.overview import Overview
    from rmsh.serve.service import SearchService


_DESCRIPTION = "Search images and texts by words, an image or a stored item. Distances are numbers of differing bits."
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (400, 401, 403, 404, 408, 409, 413, 422, 429, 503)
}


class _SmallForm(Request):
    """A request whose form has one file, which is on disk if it is large: many small ones would be held in memory."""

    def form(self, **_: Any) -> Any:
        return super().form(max_files=1, max_fields=32, max_part_size=8 << 10)


class _Route(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def limited(request: Request) -> Response:
            return await handle(_SmallForm(request.scope, request.receive))

        return limited


def create_app(service: SearchService, access: Access) -> ASGIApp:
    """The ASGI application: metrics around access control and limits, around the routes."""
    app = FastAPI(
        title="rmsh",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # its page loads scripts from other hosts
        redoc_url=None,
        responses=_PROBLEMS,
        lifespan=_enough_threads,
    )
    app.router.route_class = _Route
    explain_problems(app)
    _search_routes(app, service)
    _overview_routes(app, service.overview)
    _server_routes(app, service, access)
    static = resources.files("rmsh.serve") / "static"
    page = (static / "index.html").read_bytes()
    app.mount("/static", StaticFiles(directory=str(static)))

    @app.get("/", include_in_schema=False)
    def show_page() -> Response:
        return Response(page, media_type="text/html")

    return MetricsMiddleware(Guard(app, access=access), metrics=service.metrics)


@asynccontextmanager
async def _enough_threads(_: FastAPI) -> AsyncIterator[None]:
    """Let every connection have a thread: requests wait for a turn (limits.py) only, and the health check does not."""
    to_thread.current_default_thread_limiter().total_tokens = MOST_CONNECTIONS
    yield


def _search_routes(app: FastAPI, service: SearchService) -> None:
    @app.get("/api/search", response_model=Found)
    def search(parameters: Annotated[Parameters, Query()]) -> Response:
        """Search by words, stored items and codes of earlier searches; several parts are added up."""
        return Response(service.search(parameters), media_type="application/json")

    form = {"multipart/form-data": {"encoding": {"picture": {"contentType": "image/*"}}}}

    @app.post("/api/search", response_model=Found, openapi_extra={"requestBody": {"content": form}})
    def search_by_image(
        request: Request,
        picture: Annotated[UploadFile, File(description="JPEG, PNG, GIF, WebP, BMP, TIFF, PPM or AVIF file.")],
        parts: Annotated[Parts, Query()],
    ) -> Response:
        """Search by an image and other parts; the code in the response requests further pages without an upload."""
        found = service.search_image(picture.file, parts, client=request.client.host if request.client else "")
        return Response(found, media_type="application/json")

    @app.get("/api/item")
    def item(id: Annotated[Id, Query()]) -> ItemCodes:  # noqa: A002  # name in the URL
        """An item with its codes."""
        return service.item(id)

    answers: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}, 304: {"description": "Unchanged"}}

    @app.get("/api/picture", responses=answers, response_class=Response)
    def picture(
        request: Request,
        id: Annotated[Id, Query()],  # noqa: A002
        side: Literal["320", "640", "1280"] = "320",
    ) -> Response:
        """Thumbnail of an item's image as JPEG, upright and without metadata."""
        name, make = service.picture(id, int(side))
        headers = {"ETag": f'"{name}"', "Cache-Control": "private, max-age=300"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(make(), media_type="image/jpeg", headers=headers)


def _overview_routes(app: FastAPI, overview: Overview) -> None:
    @app.get("/api/facets")
    def facets() -> Facets:
        """Labels, cameras, keywords, ratings and months that results can be narrowed down by, with their numbers."""
        return overview.facets()

    @app.get("/api/duplicates")
    def duplicates(grouping: Annotated[Grouping, Query()]) -> Duplicates:
        """Groups of copies, similar images and bursts; the first request after a change compares all images."""
        return overview.duplicates(grouping)


def _server_routes(app: FastAPI, service: SearchService, access: Access) -> None:
    @app.get("/api/about")
    def about() -> About:
        """Describe the library and the queries it takes."""
        return service.about()

    @app.post("/api/session", status_code=204)
    async def begin_session(request: Request, token: Annotated[str, Body(embed=True, max_length=500)]) -> Response:
        """Exchange the access token for a cookie, so that a browser can load images."""
        access.check_token(token, request.scope)
        response = Response(status_code=204)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, access.session, httponly=True, samesite="strict", secure=secure)
        return response

    @app.get("/healthz")
    def health() -> dict[str, str]:
        """Health check; needs no token."""
        service.check()
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
