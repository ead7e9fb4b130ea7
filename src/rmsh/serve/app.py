"""The HTTP interface: addresses, their parameters and answers. What is computed is in answers.py."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Body, FastAPI, File, Query, Request, Response, UploadFile
from fastapi.staticfiles import StaticFiles

from rmsh import __version__
from rmsh.serve.limits import BodyLimit, ProblemError, explain_problems
from rmsh.serve.metrics import Measured
from rmsh.serve.schemas import About, Found, Id, ItemCodes, Options, Parameters, Problem
from rmsh.serve.security import COOKIE, Access, Guard

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from rmsh.serve.service import Answers

__all__ = ["create_app"]

_DESCRIPTION = "Finds pictures and texts by words, by a picture, or by each other. Distances are numbers of bits."
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (400, 401, 403, 404, 408, 409, 413, 422, 503)
}
_PAGE_FOR = "no-cache"  # a browser asks each time whether the page is still the same


def create_app(answers: Answers, access: Access) -> ASGIApp:
    """The server as an ASGI application: routes inside limits, inside the guard, inside the measurements.

    Args:
        answers: what is served.
        access: who may ask.
    """
    app = _routes(answers, access)
    return Measured(Guard(BodyLimit(app), access=access), metrics=answers.metrics)


def _routes(answers: Answers, access: Access) -> FastAPI:
    app = FastAPI(
        title="rmsh",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        responses=_PROBLEMS,
    )
    explain_problems(app)
    _search_routes(app, answers)
    _item_routes(app, answers)
    _server_routes(app, answers, access)
    static = resources.files("rmsh.serve") / "static"
    page = (static / "index.html").read_bytes()
    app.mount("/static", _Files(directory=str(static)))

    @app.get("/", include_in_schema=False)
    def show_page() -> Response:
        return Response(page, media_type="text/html", headers={"Cache-Control": _PAGE_FOR})

    return app


class _Files(StaticFiles):
    """The files of the page, checked for a newer version each time."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = _PAGE_FOR
        return response


def _search_routes(app: FastAPI, answers: Answers) -> None:
    @app.get("/api/search")
    def search(asked: Annotated[Parameters, Query()]) -> Found:
        """Search by words, from an item, or with the code of an earlier search."""
        return answers.search(asked)

    @app.post("/api/search")
    def search_by_picture(
        picture: Annotated[UploadFile, File(description="A JPEG, PNG, GIF, WEBP, BMP, TIFF, PPM or AVIF file.")],
        asked: Annotated[Options, Query()],
    ) -> Found:
        """Search by a picture; the code in the answer asks for further pages without sending it again."""
        return answers.search_picture(picture.file.read(), asked)


def _item_routes(app: FastAPI, answers: Answers) -> None:
    @app.get("/api/item")
    def item(id: Annotated[Id, Query()]) -> ItemCodes:  # noqa: A002  # the name in the address
        """An item with its codes."""
        return answers.item(id)

    @app.get("/api/picture", responses={200: {"content": {"image/jpeg": {}}}}, response_class=Response)
    def picture(
        request: Request,
        id: Annotated[Id, Query()],  # noqa: A002
        side: Literal["320", "640", "1280"] = "320",
    ) -> Response:
        """The picture of an item as JPEG, upright and without anything hidden in its file."""
        name, make = answers.picture(id, int(side))
        headers = {"ETag": f'"{name}"', "Cache-Control": "private, max-age=300"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(make(), media_type="image/jpeg", headers=headers)


def _server_routes(app: FastAPI, answers: Answers, access: Access) -> None:
    @app.get("/api/about")
    def about() -> About:
        """What is served, and what it takes."""
        return answers.about()

    @app.post("/api/session", status_code=204)
    def begin_session(request: Request, token: Annotated[str, Body(embed=True, max_length=500)]) -> Response:
        """Exchange the token for a cookie, so that a browser can show pictures."""
        if not access.is_token(token):
            raise ProblemError(401, "This is not the token of this server; it was printed when it was started.")
        response = Response(status_code=204)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, access.session, httponly=True, samesite="strict", secure=secure)
        return response

    @app.get("/healthz")
    def health() -> dict[str, str]:
        """Whether searches can be answered; needs no token and tells nothing else."""
        answers.check()
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return Response(answers.metrics.text(), media_type="text/plain; version=0.0.4")
