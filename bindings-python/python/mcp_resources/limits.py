"""The limits of a server. `make options` writes this file from the rows in Rust."""

from typing import TypedDict

__all__ = ["Limits"]


class Limits(TypedDict, total=False):
    """The limits of a server, to protect it and its clients. Limits that are not given keep their defaults."""

    message: int
    """The longest line on stdio and the largest HTTP body, in bytes. Default 4 MiB."""
    nesting: int
    """The deepest nesting of arrays and objects in one member of `params` or of its `_meta`. Default 128."""
    id: int
    """The longest request id or progress token, in bytes as written. Default 1 KiB."""
    client_info: int
    """The longest `clientInfo`, in bytes of JSON text. A session keeps it. Default 32 KiB."""
    batch: int
    """The most elements of a JSON-RPC batch. Default 256."""
    batch_bytes: int
    """The responses of one batch together, and of all incomplete batches of one connection, in bytes. A request whose
    response exceeds the limit gets an error instead. Default 64 MiB."""
    uri: int
    """The longest URI, in bytes. Default 64 KiB."""
    resources: int
    """The most registered resources. Default 1,000,000."""
    templates: int
    """The most registered templates, with those of other servers and list sources without a template. Default
    10,000."""
    tools: int
    """The most registered tools, and the most registered prompts. Default 10,000."""
    in_flight: int
    """The most unanswered requests of one connection; cancelled ones count until their handler returns. Python and Node
    allow at most 1,048,576. Default 1,024."""
    page: int
    """The items on one page of a list. Default 100."""
    list_scan: int
    """The most items that one page of a list may examine when some are skipped. Default 10,000."""
    list_source: int
    """The most items that a lister without paging may return. Default 100,000."""
    list_item: int
    """The longest entry of a list that another server describes and a provider passes on, in bytes of JSON text.
    Default 64 KiB."""
    list_ttl: int
    """The time for which the items of a lister without paging are reused for further pages, in milliseconds; with 0
    each page calls the lister. A reported change drops the items; an unreported one becomes visible after this time.
    Default 0."""
    list_cache: int
    """The most results of listers that are kept for `list_ttl`, over all principals. Default 256."""
    list_cache_bytes: int
    """The results of listers that are kept for `list_ttl`, in bytes. Default 16 MiB."""
    cache_entries: int
    """The most results in the read cache (option `cache`), over all principals. Default 10,000."""
    cache_bytes: int
    """The encoded results in the read cache, in bytes. Default 64 MiB."""
    access_answers: int
    """The most answers of functions about access that are kept, over all principals. Default 100,000."""
    access_ttl: int
    """The time after which a function about access is asked again, in milliseconds; with 0 each request asks. A person
    who loses access may read, and is notified, for this long, unless `regrant` is called. Default 30,000."""
    access_batch: int
    """The most questions that a function about access gets at once. Default 1,000."""
    principals: int
    """The most principals whose rates and open requests are counted separately; all others share a count. Default
    10,000."""
    subscriptions: int
    """The most subscriptions of one connection: `resources/subscribe` and open listens together. Default 10,000."""
    filter_uris: int
    """The most URIs of one `subscriptions/listen`. Default 10,000."""
    watched_uris: int
    """The most URIs in all subscriptions and listens of one connection. Default 100,000."""
    watched_bytes: int
    """The URIs that one connection watches, with the client's own spellings, in bytes. Default 16 MiB."""
    watched_total: int
    """The URIs that all connections watch, each counted once, with the clients' own spellings, in bytes. Default 256
    MiB."""
    contents: int
    """The largest contents of one read, in bytes before encoding. Default 16 MiB."""
    contents_total: int
    """The contents of all reads that are being collected from generators and streams, in bytes. Default 256 MiB."""
    output: int
    """The unsent output of one client, in bytes, above which no further request of it is read or started. Default 1
    MiB."""
    tool_text: int
    """The most characters of text that the tools of `expose_as_tools` return at once; the text then says how to get the
    rest. Default 40,000."""
    call_timeout: int
    """The longest time for a tool or prompt, in milliseconds; 0 for any time. Default 0."""
    read_timeout: int
    """The longest time for a read, a list or a custom method, in milliseconds. Default 30,000."""
    completion_timeout: int
    """The longest time for a completion, in milliseconds. Default 5,000."""
    arguments: int
    """The longest `context.arguments` of a completion, in bytes of JSON text. Default 64 KiB."""
    completion_values: int
    """The most values of one completion; further ones are cut off. The protocol allows 100. Default 100."""
    coalesce: int
    """The shortest time between two notifications about one URI, in milliseconds. Default 50."""
    progress_interval: int
    """The shortest time between two progress notifications of one request, in milliseconds. The first one, and any that
    reaches `total`, are always sent. Default 50."""
    log_messages: int
    """The most log messages of one request. Default 1,000."""
    state: int
    """The longest request state or cursor that a client may send back, in bytes. Default 64 KiB."""
    state_ttl: int
    """The time for which a request state is valid, in milliseconds. Default 600,000."""
    asks: int
    """The most unanswered `ctx.ask` of one connection; a further one fails. Default 64."""
    grace: int
    """The time for open requests to finish after a shutdown begins, in milliseconds. Default 1,000."""
    head: int
    """The request line and headers of an HTTP request together, in bytes. One header repeats the URI. Default 256
    KiB."""
    headers: int
    """The most header lines of an HTTP request. Default 128."""
    sessions: int
    """The most open HTTP sessions; further ones are refused. Default 10,000."""
    sessions_per_client: int
    """The most HTTP sessions of one principal or, without tokens, of one client address (64 bits of an IPv6 address);
    `initialize` is then answered with 429. Behind a proxy all clients may have the same address. Default 1,000."""
    session_idle: int
    """The time for which an unused HTTP session is kept, in milliseconds. Default 1,800,000."""
    handshake_timeout: int
    """The longest time that a new HTTP session waits for `notifications/initialized`, in milliseconds. Default
    60,000."""
    streams: int
    """The most event streams that one HTTP session keeps for resumption. Default 16."""
    replay: int
    """The events of one stream that are kept for resumption, in bytes. Default 1 MiB."""
    keep_alive: int
    """The time after which an idle event stream gets a comment, in milliseconds. Default 15,000."""
    connections: int
    """The most open HTTP connections; further ones wait in the system's queue. Default 20,000."""
    connections_per_client: int
    """The most open HTTP connections from one client address (64 bits of an IPv6 address), where `run` serves; further
    ones are closed at once. Behind a proxy all clients may have the same address. Default 5,000."""
    head_timeout: int
    """The longest time for the head of an HTTP request, in milliseconds from the first byte or, for the first request,
    from the start of the connection. It applies to the TLS handshake too. Default 10,000."""
    idle_timeout: int
    """The longest time that an idle HTTP connection stays open, in milliseconds. Default 60,000."""
    body_timeout: int
    """The longest time for the body of an HTTP request, in milliseconds; the request is then answered with 408. Default
    30,000."""
    bodies_total: int
    """All HTTP request bodies that are still incomplete, in bytes; a further one is answered with 503. Default 256
    MiB."""
    write_timeout: int
    """The longest time that a client may accept no data before its connection is closed, in milliseconds. Default
    30,000."""
    token_cache: int
    """The most verified tokens in the cache, by their digests. Default 10,000."""
    token_ttl: int
    """The longest time before a token is verified again, in milliseconds. Default 300,000."""
    audit_queue: int
    """The most audit records that wait to be written; a further one is dropped and counted. Default 10,000."""
    sse_after: int
    """The time after which an HTTP request without an answer gets an event stream, if the client accepts one, in
    milliseconds. Default 1,000."""
