//! One server of a client: the task that holds its machine and its transport.
