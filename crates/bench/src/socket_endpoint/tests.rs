//! Ends over real sockets of this host.
