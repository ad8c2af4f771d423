/*
 * How the C libraries wait: numbers of the table of internal/wait, which says what chose each:
 * go test ./internal/wait -run Header -update
 */
#ifndef SVPI_WAITING_H
#define SVPI_WAITING_H

enum {
	SVPI_POLL_LOOKS = 16, /* empty polls of a completion queue before the processor is first yielded */
	SVPI_POLL_LOOKS_MOST = 256, /* what that doubles up to, at each yield */
	SVPI_STREAM_LOOKS = 2, /* empty polls in a row that a receiver of a stream pauses after */
	SVPI_STREAM_PAUSE = 8000, /* steps of such a pause */
	SVPI_COPIER_LOOKS = 64, /* looks of the copier, with yields between them, before it sleeps */
	SVPI_COPIER_SLICE_MS = 50, /* the longest sleep of the copier */
	SVPI_SOCKET_LOOKS = 32, /* looks of a socket, with yields between them, before it sleeps */
	SVPI_SOCKET_SLICE_MS = 500, /* the longest sleep of a socket, after which it notices that it was closed */
};

#endif
