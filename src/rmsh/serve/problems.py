"""What a client is told when something is wrong: one sentence as JSON, and never a path or a traceback."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rmsh.errors import CodesError, InputError, RmshError

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from starlette.types import Receive, Scope, Send

__all__ = ["ProblemError", "explain_problems", "respond"]

_log = logging.getLogger("rmsh.serve")


class ProblemError(HTTPException):
    """A refusal in words of our own, with the status it is answered by."""


def _answer(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers={"Cache-Control": "no-store", **(headers or {})})


async def respond(problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer from outside of the routes."""
    await _answer(problem.status_code, problem.detail, problem.headers)(scope, receive, send)


def explain_problems(app: FastAPI) -> None:
    """Let an app answer every error by a sentence."""
    app.add_exception_handler(ProblemError, _refused)
    app.add_exception_handler(RmshError, _rmsh_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def _refused(_: Request, error: Any) -> JSONResponse:
    return _answer(error.status_code, error.detail, error.headers)


async def _rmsh_error(_: Request, error: Any) -> JSONResponse:
    if isinstance(error, CodesError):
        return _answer(409, "The code is of another model than the library's; search anew.")
    if isinstance(error, InputError):
        return _answer(400, str(error))
    _log.error("%s", error)  # says what happened to which file, which is for the log alone
    return _answer(503, "The library cannot be searched at the moment; the log of the server says why.")


async def _invalid(_: Request, error: Any) -> JSONResponse:
    """The first thing that is wrong with the parameters, by name."""
    first = error.errors()[0]
    where = [str(part) for part in first["loc"] if part not in ("query", "body")]
    reason = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return _answer(422, f"{'.'.join(where) + ': ' if where else ''}{reason}.")


async def _http(_: Request, error: Any) -> JSONResponse:
    sentences = {404: "There is nothing at this address.", 405: "This address does not take such requests."}
    return _answer(error.status_code, sentences.get(error.status_code, str(error.detail)), error.headers)


async def _bug(_: Request, __: Any) -> JSONResponse:
    return _answer(500, "Something went wrong in the server; its log says what.")
