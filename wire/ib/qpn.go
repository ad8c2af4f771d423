package ib

// QPN is a queue pair number, 24 bits.
type QPN uint32

// Queue pair numbers with a special meaning (IBA 3.9.2, 10.2.4).
const (
	QPSMI       QPN = 0        // subnet management interface
	QPGSI       QPN = 1        // general service interface: CM and the other managers
	QPMulticast QPN = 0xffffff // destination of multicast datagrams
	QPNMask     QPN = 0xffffff
)

// Q_Keys with a special meaning.
const (
	// QKeyGSI is the Q_Key of QP1 (IBA 10.2.5).
	QKeyGSI = 0x80010000
	// QKeyPrivileged is the top bit of a Q_Key. If it is set in a work request's Q_Key, the queue pair's
	// own Q_Key is used instead (IBA 10.2.5).
	QKeyPrivileged = 0x80000000
	// QKeyRDMAUDP is the Q_Key that the RDMA CM assigns to queue pairs of its UDP port space.
	QKeyRDMAUDP = 0x01234567
)
