"""Spans for OpenTelemetry, where the setting ``tracing.endpoint`` names a collector; else nothing, at no cost.

Rules:

- A request is a span, below that of its caller (``traceparent``); so is a pass of a loop, and what it decides about a
  pool and does to an object. What is asked of the database is a span below them, its wait for a connection included.
- Names and attributes are OpenTelemetry's conventions, and ids of ours; never a path, a query, a header, a body or a
  statement.
- A collector that is away or slow costs spans, and nothing else: they are sent by a thread, and dropped when too many
  wait. It is the operator's, and trusted.
- While a span is recorded, lines of the log have its ``trace_id`` and ``span_id``.

`opentelemetry` is imported when it is needed: the SDK comes with ``tenax[otel]``.
"""

from __future__ import annotations

import os
import random
import re
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from tenax import __version__
from tenax.config.master import TracingSettings
from tenax.errors import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler
    from opentelemetry.trace import Tracer

Attribute = str | int | float | bool

#: Version, trace, span and flags of a caller.
_TRACEPARENT = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
#: Spans that have ended are sent within this time at the end of the process, or not at all.
_FLUSH_S = 1.0


class Span(Protocol):
    """What may be said of what goes on."""

    def update_name(self, name: str) -> None:
        """Call it something else."""

    def set_attribute(self, key: str, value: Attribute) -> None:
        """Say something of it."""


class _NoSpan:
    def update_name(self, name: str) -> None:
        """Nobody listens."""

    def set_attribute(self, key: str, value: Attribute) -> None:
        """Nobody listens."""


_NO_SPAN: Span = _NoSpan()
_NOTHING: AbstractContextManager[Span] = nullcontext(_NO_SPAN)

#: Of this process; None: nothing is traced.
_tracer: Tracer | None = None


def is_on() -> bool:
    """Whether anything is traced."""
    return _tracer is not None


@contextmanager
def tracing(settings: TracingSettings) -> Iterator[None]:
    """Inside, spans are made, where an endpoint is set. Raises InvalidInput."""
    global _tracer
    if not settings.endpoint:
        yield
        return
    provider = _provider(settings)
    _tracer = provider.get_tracer("tenax", __version__)
    try:
        yield
    finally:
        _tracer = None
        # Its thread is a daemon, and so is this one: a collector that is away does not keep the process.
        flushing = threading.Thread(target=provider.force_flush, args=(int(_FLUSH_S * 1000),), daemon=True)
        flushing.start()
        flushing.join(_FLUSH_S)


def _provider(settings: TracingSettings) -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InvalidInput(
            f"tracing.endpoint is set, and {error.name or error} is not installed: pip install 'tenax[otel]' where the "
            "master runs, or leave the setting out"
        ) from None
    about = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "tenax-master"),
        "service.version": __version__,
        "service.instance.id": str(uuid.uuid4()),
    }
    provider = TracerProvider(
        resource=Resource.create(about), sampler=_sampler(settings.sample), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.traces_url)))
    return provider


def _sampler(share: float) -> Sampler:
    """A share of what begins here, and all below it. What a caller says of its own trace decides nothing."""
    from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult

    class Share(Sampler):
        def should_sample(self, *_: object, attributes: Any = None, **__: object) -> SamplingResult:
            is_kept = random.random() < share
            return SamplingResult(Decision.RECORD_AND_SAMPLE if is_kept else Decision.DROP, attributes)

        def get_description(self) -> str:
            return f"a share of {share}"

    drawn = Share()
    return ParentBased(drawn, remote_parent_sampled=drawn, remote_parent_not_sampled=drawn)


def span(name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
    """What goes on inside; spans that begin inside are below it. Dots of attributes are written ``__``."""
    if _tracer is None:
        return _NOTHING
    return _current(_tracer, name, attributes=_dotted(attributes))


@contextmanager
def request(method: str, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Span]:
    """A request that is answered."""
    if _tracer is None:
        yield _NO_SPAN
        return
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, set_span_in_context

    # Not that of a request before it, on one connection.
    parent = Context()
    given = next((value for name, value in headers if name == b"traceparent"), b"")
    caller = _TRACEPARENT.fullmatch(given)
    if caller is not None:
        ids_given = SpanContext(int(caller[1], 16), int(caller[2], 16), is_remote=True)
        parent = set_span_in_context(NonRecordingSpan(ids_given), parent)
    attributes = {"http.request.method": method}
    with _current(_tracer, method, context=parent, kind=SpanKind.SERVER, attributes=attributes) as span:
        yield span


@contextmanager
def _current(tracer: Tracer, name: str, **options: Any) -> Iterator[Span]:
    """What an error says may be anybody's, its kind is not."""
    options.update(record_exception=False, set_status_on_exception=False)
    with tracer.start_as_current_span(name, **options) as span:
        try:
            yield span
        except Exception as error:
            failed(span, type(error).__name__)
            raise


def failed(span: Span, kind: str) -> None:
    """What it tells of came to nothing, and in what way."""
    if _tracer is None:
        return
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)  # type: ignore[attr-defined]


@contextmanager
def leaf(name: str, **attributes: Attribute) -> Iterator[Span]:
    """As `span`, but only below another one, and with nothing below it: it may end elsewhere than it began."""
    if _tracer is None or not ids():
        yield _NO_SPAN
        return
    from opentelemetry.trace import SpanKind

    span = _tracer.start_span(name, kind=SpanKind.CLIENT, attributes=_dotted(attributes))
    try:
        yield span
    except Exception as error:
        failed(span, type(error).__name__)
        raise
    finally:
        span.end()


def ids() -> dict[str, str]:
    """Of the span that goes on, for lines of the log."""
    if _tracer is None:
        return {}
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if not context.trace_flags.sampled:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _dotted(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    return {name.replace("__", "."): value for name, value in attributes.items()}
