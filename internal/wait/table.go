package wait

import "time"

// Kind is a kind of waiter.
type Kind uint8

// The kinds of waiters.
const (
	// EmbeddedPoll is a program that polls completion queues of adapters of its own, each poll of which drives the loop.
	EmbeddedPoll Kind = iota
	// EmbeddedWait is a program that waits for a completion queue of adapters of its own, and drives the loop meanwhile.
	EmbeddedWait
	// Background is the background goroutine of the adapters' loop.
	Background
	// AttachedPoll is a program that polls completion queues of a driver.
	AttachedPoll
	// AttachedWait is a program that waits for a completion queue of a driver; a look is sixteen reads of the queue's
	// event word, about as long as a poll.
	AttachedWait
	// LoopLock is the background goroutine when somebody else has the loop lock.
	LoopLock
	// Track is either side of an attachment, at an empty track of frames.
	Track
	// Copier is a program's thread that copies for the driver.
	Copier
	// Cables is the pump of a fabric that has cables to other processes.
	Cables
	// Leader is the goroutine of package rdmanet that takes the results of all connections of an adapter.
	Leader
	// Window is a member of a simulation's crew that waits for the next window of time, and who runs them and waits for the others.
	Window
	// LibrarySocket is a program that waits in a socket of the C library (rsockets).
	LibrarySocket
	kinds
)

// Of returns the policy of a kind of waiter.
func Of(k Kind) Policy { return table[k].Policy }

// row is what the table says of a kind.
type row struct {
	Policy
	measured string // what chose the numbers
}

// The table of policies. What a step costs that nobody takes advantage of (BenchmarkStep) was measured with
//
//	taskset -c 0,1 go test -run xxx -bench . ./internal/wait
//
// on a virtual machine with four processors (AMD EPYC), beside other work: a look 1.6 ns, a Pause 0.24 us, a yield to
// threads 0.42 us, to goroutines and threads 4.2 us, a nap 75 us; a hop through a Poller (BenchmarkWakeUp) 3.1 to 6.0 us.
// BenchmarkSpin was measured beside work of several others, by chrt -r 20, medians of nine. Other figures are of the
// machines of docs/performance.md. "Old → new" is what the change bought that brought the number.
var table = [kinds]row{
	EmbeddedPoll: {
		Policy{Spin: Forever, Most: 64, Looks: 64, Goroutines: 16},
		"A yield to goroutines for each 16 to threads, not for each one: latency of sends, busy machine, 23 → 19 us; each had " +
			"woken a thread on the peer's processor (BenchmarkStep: it takes ten times as long). A yield for 64 polls, not for " +
			"twelve, unless they are used: nd_send_lat across veth on an AMD EPYC, a processor for each end 2.73 → 2.53 us, one for " +
			"both 7.2 → 5.2 us (16 if never sooner than after 64). 64 polls take about as long as the spin of EmbeddedWait.",
	},
	EmbeddedWait: {
		Policy{Spin: 50 * time.Microsecond, Looks: 1, Goroutines: 4096},
		"BenchmarkSpin, time and processor time beyond that of an answer that takes 20 us: no spin 42 and 53 us, 10 us 33 and " +
			"55, 30 us 10 and 39, 50 us 7 and 34, 100 us 7 and 33; of one that takes 60 us: no spin 37 and 66, 50 us 33 and 97, " +
			"100 us 6 and 71. Hardly any yields to goroutines: those of a receiver of small messages took a tenth of the sender's time.",
	},
	Background: {
		Policy{Spin: 50 * time.Microsecond, Looks: 1, Earn: 500 * time.Microsecond},
		"The spin is that of EmbeddedWait. Looking for more of a stream for up to 0.5 ms: in the virtual machine of make " +
			"bench-loss, 1 % lost, four queue pairs, 0.193 → 0.221 Gb/s (medians of six) and 0.190 → 0.220 (of five); the receiver " +
			"had slept and been woken 1,100 times a second.",
	},
	AttachedPoll: {
		Policy{Spin: Forever, Most: 512, Looks: 64, Goroutines: 16},
		"A yield for 64 looks, not for each, unless they are used: write 0.40 → 0.25 us, send 0.87 → 0.75; very busy machine, with " +
			"the naps, send 1.64 → 0.70 us, sends of 4 KB 15.5 → 35.1 Gb/s. Goroutines: as EmbeddedPoll.",
	},
	AttachedWait: {
		Policy{Spin: 30 * time.Microsecond, Looks: 64, Goroutines: 1},
		"BenchmarkSpin (EmbeddedWait): 30 us have most of what 50 us have, with answers after 2 us (31 us beyond it without " +
			"spin, 9.8 and 7.8) and 20 us. The answer of another program of the driver takes less than a microsecond.",
	},
	LoopLock: {
		Policy{Spin: Forever, Most: 65, Looks: 1},
		"BenchmarkStep: 65 yields that nobody uses take 27 us, about what a sleep and a wake-up cost (BenchmarkSpin).",
	},
	Track: {
		Policy{Spin: 500 * time.Microsecond, Looks: 8, Goroutines: 1, Recent: true},
		"Attached connections (softvpi bench --part scale): 22,100 a second with 50 us, 24,000 with 200, 26,900 with 400, 29,300 " +
			"with 1,000. Yields to goroutines once, never or each time: 90, 93 and 90 us of processor time for a connection.",
	},
	Copier: {
		Policy{Spin: Forever, Most: 64, Looks: 1},
		"BenchmarkStep: 64 yields that nobody uses take 27 us, as the spin of AttachedWait.",
	},
	Cables: {
		Policy{Spin: 50 * time.Microsecond, Looks: 1},
		"BenchmarkSpin (EmbeddedWait): the pump serves both ends of a cable, which answer each other within that time.",
	},
	Leader: {
		Policy{Spin: 40 * time.Microsecond, Recent: true, Processors: 2},
		"BenchmarkSpin (EmbeddedWait), between the spins of attached and embedded waiters, as an adapter may be either's. Where the " +
			"answer takes longer a spin only costs (60 us: 66 → 97 us of processor time): so it is for recent answers alone.",
	},
	Window: {
		Policy{Spin: 200 * time.Microsecond, Looks: 64, Goroutines: 1},
		"BenchmarkSpin (EmbeddedWait): a sleep and its wake-up cost 40 us, and windows that are shared follow each other by tens of " +
			"microseconds: 64 turns or more of 0.3 us (simulate's BenchmarkIncast).",
	},
	LibrarySocket: {
		Policy{Spin: Forever, Most: 32, Looks: 1},
		"BenchmarkStep: 32 yields that nobody uses take 13 us; while somebody else needs the processor each takes as long as that.",
	},
}

// LeaderYields is how often in a row Leader yields to goroutines that use it, although there are no results. Measured:
// gRPC's writer waited some 60 us for the processor that the sleeping leader kept.
const LeaderYields = 4

// ownerTries is how often a waiter wakes the watchdog, and yields to it, to become the poll owner in its place; then it
// sleeps as a follower. Measured: BenchmarkWakeUp, BenchmarkStep: it takes the watchdog 3 to 6 us to wake up, and 50 yields
// 0.2 ms.
const ownerTries = 50

// The number of looks, and of calls of Pause, of those who look at what another processor is about to store.
const (
	// ReceiveLooks is how often an initiator on the direct path that finds no receive looks, a Pause apart, before it
	// leaves its request in the send queue: a responder that polls is about to post some. Measured: BenchmarkStep: ten take
	// 2.4 us; a hop through the driver takes 3 to 8 us, a direct one 0.4.
	ReceiveLooks = 10
	// StreamLooks is how many empty polls in a row of a receiver of a stream are followed by StreamPauses calls of Pause
	// each. Measured: two, not one, with empty polls counted once: nd_send_bw --mode attached, sends of 4 KB 50.4 → 55.1 Gb/s, of
	// 64 B 1.84 → 1.97 million a second; in the C library, from none, 64-byte sends of perftest from about 5 to 7 million a second.
	StreamLooks  = 2
	StreamPauses = 8
)

// How long those sleep who are not woken, or may miss what ends them.
const (
	// SleepSlice limits one sleep of AttachedWait, CopierSlice one of Copier, and SocketSlice one of LibrarySocket: after that
	// they notice the end of their attachment, or of the socket, without a wake-up. Measured: BenchmarkWakeUp: twenty
	// wake-ups a second are 0.01 % of a processor.
	SleepSlice  = 100 * time.Millisecond
	CopierSlice = 50 * time.Millisecond
	SocketSlice = 500 * time.Millisecond
	// CommandSleep is the longest sleep of the poll owner after a command. The next one may well set a deadline, such as
	// for a message of the CM, and cancel it: for deadlines later than this nobody needs to be woken. Measured: attached
	// connections 92 → 89 us, embedded 62 → 60 (with one look-up of the peer, not five).
	CommandSleep = 250 * time.Millisecond
	// loopLockPause is the pause of LoopLock between two looks once it has yielded in vain. Measured: BenchmarkStep: no sleep is
	// shorter than some 75 us.
	loopLockPause = 100 * time.Microsecond
)

// The C library's programs poll as AttachedPoll does, but begin with few looks for each yield, and twice as many after each:
// they do not measure whether yields are used.
const (
	// LibraryLooks is after how many vain looks the first yield comes, and LibraryMostLooks what their number grows to.
	// Measured: ib_send_lat (8 B) and ib_send_bw (64 B) between two programs of one driver, on two processors beside other
	// work, medians of five: 4.5 us and 0.22 million a second; 16 looks each time 3.5 and 0.32, 64 4.3 and 0.35, 256 4.4 and
	// 0.44. One run differed from the next by more than that, so that the numbers were kept.
	LibraryLooks     = 16
	LibraryMostLooks = 256
)

// Question is something that is asked for again after pauses.
type Question uint8

// The questions.
const (
	// Recalled asks whether a program has left the operation that a command waits for.
	Recalled Question = iota
	// Taken asks whether a program has taken the frames that it did not request.
	Taken
	// Room asks whether a full track has room.
	Room
	// Passed asks whether the system takes descriptors again (ETOOMANYREFS).
	Passed
	// Settled asks whether a queue pair of IPoIB has drained, or a fabric has answered over UDP.
	Settled
	questions
)

// Ask returns the pauses between two looks at the answer.
func Ask(q Question) Backoff { return Backoff{First: pauses[q].first, Most: pauses[q].most} }

// The table of pauses.
var pauses = [questions]struct {
	first, most time.Duration
	measured    string
}{
	Recalled: {
		10 * time.Microsecond, time.Millisecond,
		"An operation is a copy of at most 64 MB: 64 KB take 6.7 us (process_vm_readv), 64 MB 6 ms.",
	},
	Taken: {
		50 * time.Microsecond, 20 * time.Millisecond,
		"BenchmarkSpin: a thread that is woken to take them has run after some 40 us; programs without one take them when they poll.",
	},
	Room: {
		50 * time.Microsecond, 50 * time.Microsecond,
		"BenchmarkSpin: the consumer that was woken has run after some 40 us, and has made room by then.",
	},
	Passed: {
		time.Millisecond, time.Millisecond,
		"BenchmarkStep: a pause takes at least 75 us; programs that do not read theirs keep the system from taking any for long.",
	},
	Settled: {
		100 * time.Microsecond, 100 * time.Microsecond,
		"BenchmarkStep: a pause takes at least 75 us, so that shorter ones would not be; both happen once, as a connection begins or ends.",
	},
}

// The numbers beside the policies. What follows "Measured:" chose each.
const (
	// streamPackets is the number of packets in one turn of the loop from which on they count as a stream. Measured: a
	// request and its acknowledgement are two, a batch of the link up to 256; latency does not see it.
	streamPackets = 8
	// usedTime is the minimum duration of a yield that another thread used, and usedCost how many times as long as an unused
	// one it takes at least. Measured: BenchmarkStep, BenchmarkUsedYield: 0.42 us if nobody uses it, 2.0 us if another thread
	// yields in its turn; 1.35 and 3.6 us in a virtual machine whose host keeps its page tables.
	usedTime = 1200 * time.Nanosecond
	usedCost = 2
	// goroutineUsed is the minimum duration of a yield to goroutines that one of them used. Measured: BenchmarkStep: a yield to
	// goroutines that finds none takes 3.8 us where the runtime has an idle P to look for some, 0.1 us where it has none.
	goroutineUsed = 4 * time.Microsecond
	// contended is how many consecutive yields must go unused before they are as seldom as Policy.Looks says. Measured: as
	// weary and the naps, with which it came.
	contended = 16
	// weary is how many yields must be used before a nap. Measured: the two programs of a write were on one processor all
	// along, 1.5 us a hop, in 5 runs of 12 without naps, in none of 18 with them; very busy machine, 7 of 10 and 5 of 10.
	weary = 32
	// napTime is the length of a nap. Measured: BenchmarkStep: with the system's timer slack it takes 75 us; to have slept
	// is what moves a thread.
	napTime = time.Microsecond
	// The time between naps is at least napGap, and doubles each time up to napGapMost, until there was none for napRest.
	// Measured: with weary; at napGapMost naps take 0.4 % of the time of programs that must share a processor.
	napGap     = 100 * time.Microsecond
	napGapMost = 20 * time.Millisecond
	napRest    = time.Second
	// timerFine is the shortest time for which a timer of the runtime is set (SetTimer): shorter ones pass in naps of timerLeast to
	// timerNap. Measured: BenchmarkTimer: where every thread sleeps a timer of 0.2 ms is 0.9 ms late, as the runtime waits for
	// whole milliseconds, and a nap 0.1 ms.
	timerFine  = 2 * time.Millisecond
	timerLeast = 50 * time.Microsecond
	timerNap   = 200 * time.Microsecond
	// lowerLooks is the number of vain looks after which threads with real-time priority sleep between looks: sched_yield(2)
	// does not yield to lower priorities, and who they wait for may need this processor. Measured: it takes about a
	// millisecond of polls, long after every other wait is over.
	lowerLooks = 256 * 64
	// lowerNap is the length of such a sleep. Measured: one of a microsecond ends before they sleep, as such threads have
	// no timer slack (TestDo_SleepsAtRealTimePriority).
	lowerNap = 50 * time.Microsecond
	// watchFirst is after what time the watchdog first checks whether those who poll still do, and again after a command;
	// watchMost is what the time doubles up to. Measured: 8 ms, not 250 us: mean latency 5.7 → 5.1 us, 99 % 24 → 18.5 us; each
	// check wakes three or four threads.
	watchFirst = 250 * time.Microsecond
	watchMost  = 8 * time.Millisecond
	// parkAfter is after how many checks that found the same poll owner asleep the watchdog sleeps until that one leaves.
	// Measured: an idle program wakes nobody after 16 checks, 0.1 s.
	parkAfter = 16
)
