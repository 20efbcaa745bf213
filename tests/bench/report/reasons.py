"""Why goals are short: what profiles of the servers showed, by key. A reason is told only while its goal is short."""

REASONS = {
    "engine": (
        "the floor finds an id and answers with bytes that it has; a read by template takes 12,000 instructions, of which "
        "reading the JSON is a sixth, moving structs, the allocator, and matching the template with its values a tenth "
        "each; the rest is spread over the checks of the ladder, the table of what is in flight, two looks at the clock "
        "and the handler's future (callgrind). Lending requests instead of moving them, one walk over `_meta`, integers "
        "without fmt and one clock instead of two took a tenth off; code half as large (`opt-level = \"s\"`) costs a fifth."
    ),
    "asyncio": (
        "a turn of asyncio's own loop is 13,500 of the 22,000 instructions of a constant that is read alone (callgrind, "
        "Python 3.11); a bare loop in Python that finds the id and answers a constant takes 1.6 × the floor by itself."
    ),
    "threads": (
        "of a `def` on the worker threads half is the engine, a quarter the interpreter, a fifth allocation and moves "
        "(perf): a copy of the context variables, a tuple of arguments and an object for the outcome for each call, and "
        "memory that one thread takes and another gives back. `inline=True` leaves these out. Room for an answer in one "
        "piece and an output buffer that is kept took a tenth off."
    ),
    "tasks": (
        "on Python 3.11 a coroutine needs a task of asyncio's and two turns of its loop, which the engine cannot shorten by "
        "public means; from 3.12 on tasks start eagerly."
    ),
    "libuv": (
        "a bare Node that finds the id by a regular expression and answers a constant takes 1.3 × the floor for one read at "
        "a time; the rest is the engine (above) and a call from Rust into the function and back."
    ),
    "text": "each byte is looked at for escapes and copied twice, into the answer and into the pipe; the floor's is worded beforehand.",
    "blob": "each byte is encoded and copied twice, into the answer and into the pipe; the floor's is worded beforehand.",
    "list": "items are encoded once and copied after that; what is left is the pipe, and the peer's list is one page for which it does little else.",
    "told": "each listener is told by a write of its own to its own socket, and by a wake of its own task.",
    "http": "hyper reads the head into a map of headers and words one again; a request and its answer are a tenth of the engine's own.",
    "start ours-python": "the interpreter alone takes the time of `bare-python`; what is ours beyond it is the import, and a thousand registrations.",
    "start ours-node": "the runtime alone takes the time of `bare-node`; what is ours beyond it is the import, and a thousand registrations.",
    "start ours-rust": "a thousand registrations, each checked and put into persistent maps, are two thirds of it (8,600 instructions each).",
    "listener": (
        "of 23 KB that a listener allocates (massif) 16.4 are two buffers of hyper's that have no smaller size, 1.5 the task "
        "with hyper's connection; they are touched in part. What is ours is 3.5."
    ),
}
