"""An AWS that answers as it is told to: every question and every answer is held against botocore's models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

Answer = dict[str, Any] | Exception | Callable[[str, dict[str, Any]], dict[str, Any]]


def refused(code: str) -> ClientError:
    """An error of AWS."""
    return ClientError({"Error": {"Code": code, "Message": code}}, "Operation")


class Aws:
    """Answers by operation: a response, an error, or a function of region and question.

    Attributes:
        answers: Operation → answer; one that is missing fails the test.
        asked: Region, operation and question, in the order they were asked.
    """

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def call(self, client: Any, operation: str, question: dict[str, Any]) -> dict[str, Any]:
        """Stands for `BaseClient._make_api_call`."""
        model = client.meta.service_model.operation_model(operation)
        self._check(question, model.input_shape)
        region = client.meta.region_name
        self.asked.append((region, operation, question))
        assert operation in self.answers, f"nobody told what {operation} answers"
        answer = self.answers[operation]
        if isinstance(answer, ClientError) and (found := answer.response["Error"]["Code"]):
            raise client.exceptions.from_code(found)(answer.response, operation)
        if isinstance(answer, Exception):
            raise answer
        given = answer(region, question) if callable(answer) else answer
        self._check(given, model.output_shape)
        return given

    @staticmethod
    def _check(value: dict[str, Any], shape: Any) -> None:
        if shape is not None:
            report = ParamValidator().validate(value, shape)
            assert not report.has_errors(), report.generate_report()
            assert set(value) <= set(shape.members), set(value) - set(shape.members)
