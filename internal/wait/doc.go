// Package wait is how everything here waits for something that another thread, process or machine will do: the
// policy, which is pure, and the few ways to give a processor up that it needs. Programs that poll (verbs, nd,
// rdmanet), the loop of the adapters (device), attached programs and their driver (ipc) and the pump of a fabric
// (fabric/live) all wait by it.
//
// # The trade
//
// Waking a thread that sleeps costs both ends: the sleeper some microseconds until it runs again, tens of them in a
// virtual machine, and the one who wakes it a system call on its critical path. Looking again costs nothing if what is
// waited for comes within about the time of a wake-up, and then saves both. After that it costs a processor, which
// may be the very one that the producer needs: with as many spinning threads as processors throughput falls tenfold.
// So a waiter passes through four stages:
//
//  1. It looks again at once (Look), a few times: the news may be a cache line away.
//  2. It looks again after each yield of the processor to other threads (YieldThread). A yield that nobody uses costs
//     a third of a microsecond, or one and a half in some virtual machines; one that somebody uses is the fastest way to
//     what is waited for. Yields to goroutines (YieldAll) are seldomer: where the Go runtime has an idle P, each wakes a
//     thread to look for goroutines, on a processor that the producer may need.
//  3. It asks for wake-ups and looks once more (Arm): what came before it asked comes with no wake-up, what comes
//     later does.
//  4. It sleeps, in a Poller, a Parker or on a word of shared memory, until it is woken or its next deadline.
//
// Policy has how long each stage lasts, for each Kind of waiter in one table (table.go), with the measurement that
// chose it. Spinner leads one waiter through them; it reads no clock and makes no call. A waiter for which looking paid
// the last time may look longer: one whose news came within its spin (Recent), or one that looks for the rest of a
// stream as long as the stream has kept it busy (Earn). Contention watches whether yields are used, for pollers that
// share an attachment: while they are, each vain look is followed by one. How long they take tells, once the machine has shown
// what one takes that nobody uses (cost).
//
// # Who polls for whom
//
// What arrives on sockets and queues of a process is taken by one thread at a time, the poll owner; the others are
// followers, who sleep until the poll owner has something for them. A thread that waits becomes the poll owner if there
// is none, because the one who waits for a packet should also be the one who takes it: a hand-over costs a wake-up. A
// background goroutine is the watchdog: it polls while nobody else does, and otherwise sleeps beside them, seldomer the
// longer they poll (Watchdog). A poll owner that has what it wants leaves its role to a follower, or to the watchdog.
//
// # Pauses
//
// What neither signals nor is worth a wake-up is asked for again after pauses that double (Backoff).
package wait
