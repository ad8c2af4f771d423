package congestion

import (
	"math"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// leastRate is the current rate, in Mbit/s, below which no queue pair falls, whatever MinRate is: it would not come back.
	leastRate = 0.1
	// unlimited is how close to the line rate, in Mbit/s, the current rate ends the limit: the unit of all rates.
	unlimited = 1
	// tail is behind the ticks of alpha that are due at the same time.
	tail = time.Nanosecond
	// settled is the number of increases after which all have the same step: more than any Threshold.
	settled = 64
)

// ReactionPoint limits the rate of a queue pair by the congestion notifications that it gets (DCQCN; WinOF-2 Ethernet b,
// Congestion Control Behavior when Changing the Parameters; IEEE 802.1Qau, 32.11 to 32.15). It has no timers: what would
// have happened since is worked out when it is asked. The first notification begins the limit, which ends when
// the current rate is back at the line rate; the next notification is then a first one.
type ReactionPoint struct {
	par  *Parameters
	rate Rate
	on   bool
	// Of alpha: whether a notification has come since it changed last, and when it does next.
	alphaNotified bool
	alphaAt       clock.Time
	// reduceAt is when a decrease is due: at a tick of ReducePeriod behind a notification; Never: there was none.
	reduceAt  clock.Time
	began     clock.Time // the first notification, from which both periods count
	raiseAt   clock.Time // the next increase by the timer
	bytesLeft int64      // until the next increase by the byte counter
	timeStage int64      // increases since the last decrease
	byteStage int64
	next      clock.Time // from when on the next packet may leave
	charged   int        // bytes for which it has to wait until then
}

// Rate is how a reaction point limits a queue pair. Rates are in Mbit/s, Alpha is a fraction.
type Rate struct{ Current, Target, Alpha float64 }

// NewReactionPoint returns one that limits nothing. The parameters remain the caller's, who may change them: that acts at once.
func NewReactionPoint(p *Parameters) *ReactionPoint { return &ReactionPoint{par: p} }

// Limited reports whether the rate is limited.
func (r *ReactionPoint) Limited() bool { return r.on }

// Rate returns what limits the queue pair at a time; false: nothing does.
func (r *ReactionPoint) Rate(now clock.Time) (Rate, bool) {
	r.advance(now)
	if !r.on {
		return Rate{Current: r.par.LineRate, Target: r.par.LineRate}, false
	}
	r.updateAlpha(now)
	return r.rate, true
}

// Notified says that a congestion notification has arrived.
func (r *ReactionPoint) Notified(now clock.Time) {
	r.advance(now)
	if !r.on {
		r.begin(now)
	} else {
		r.updateAlpha(now)
		r.alphaNotified = true
	}
	switch period := r.par.ReducePeriod; {
	case r.reduceAt != clock.Never:
	case period == 0:
		r.reduce(now)
	default:
		ticks := max(1, (now.Sub(r.began)+period-1)/period)
		r.reduceAt = r.began.Add(ticks*period + tail)
	}
}

// begin starts the limit at the first notification.
func (r *ReactionPoint) begin(now clock.Time) {
	p := r.par
	*r = ReactionPoint{par: p, on: true, began: now, alphaAt: now.Add(p.AlphaPeriod), reduceAt: clock.Never, next: now}
	r.rate = Rate{Current: p.LineRate, Target: p.LineRate, Alpha: p.InitialAlpha}
	if p.FirstCNPRate > 0 {
		first := r.bounded(p.FirstCNPRate)
		r.rate.Current, r.rate.Target = first, first
	}
	r.restart(now)
}

// restart begins with both kinds of increase again.
func (r *ReactionPoint) restart(now clock.Time) {
	r.timeStage, r.byteStage = 0, 0
	r.bytesLeft = r.par.ByteReset
	r.raiseAt = clock.Never
	if r.par.TimeReset > 0 {
		r.raiseAt = now.Add(r.par.TimeReset)
	}
}

func (r *ReactionPoint) bounded(rate float64) float64 {
	return min(max(rate, r.par.MinRate, leastRate), r.par.LineRate)
}

// advance does the decrease and the increases that were due until now.
func (r *ReactionPoint) advance(now clock.Time) {
	if r.reduceAt > now && r.raiseAt > now && r.raiseAt != clock.Never { // as mostly
		return
	}
	r.catchUp(now)
}

// catchUp is advance where something may be due.
func (r *ReactionPoint) catchUp(now clock.Time) {
	if r.raiseAt == clock.Never && r.on && r.par.TimeReset > 0 { // switched on meanwhile
		r.raiseAt = now.Add(r.par.TimeReset)
	}
	for r.on {
		switch {
		case r.reduceAt <= now && r.reduceAt <= r.raiseAt:
			at := r.reduceAt
			r.reduceAt = clock.Never
			r.reduce(at)
		case r.raiseAt <= now:
			r.raiseByTime(clock.Min(now, r.reduceAt-1))
		default:
			return
		}
	}
}

// updateAlpha brings alpha up to date: in the first period it follows whether a notification came, in the others none did.
func (r *ReactionPoint) updateAlpha(now clock.Time) {
	p := r.par
	if p.AlphaPeriod == 0 || now < r.alphaAt {
		return
	}
	periods := now.Sub(r.alphaAt) / p.AlphaPeriod
	r.alphaAt = r.alphaAt.Add((periods + 1) * p.AlphaPeriod)
	r.rate.Alpha *= 1 - p.G
	if r.alphaNotified {
		r.rate.Alpha += p.G
		r.alphaNotified = false
	}
	if periods > 0 {
		r.rate.Alpha *= math.Pow(1-p.G, float64(periods))
	}
}

// reduce lowers the rate. The larger of what alpha and MinDecrease leave of it counts.
func (r *ReactionPoint) reduce(now clock.Time) {
	r.updateAlpha(now)
	p := r.par
	if p.ClampTarget || r.byteStage > 0 || p.ClampTargetAfterTime && r.timeStage > 0 {
		r.rate.Target = r.rate.Current
	}
	keep := 1 - r.rate.Alpha*1024/float64(uint(1)<<p.AlphaShift)
	r.change(now, r.bounded(r.rate.Current*max(keep, p.MinDecrease)))
	r.restart(now)
	r.release()
}

// raiseByTime does the increases by the timer until a time.
func (r *ReactionPoint) raiseByTime(until clock.Time) {
	period := r.par.TimeReset
	if period == 0 { // switched off meanwhile
		r.raiseAt = clock.Never
		return
	}
	for n := 0; r.on && r.raiseAt <= until; n++ {
		if n == settled {
			times := int64(until.Sub(r.raiseAt)/period) + 1
			at := r.raiseAt
			r.raiseAt = r.raiseAt.Add(time.Duration(times) * period)
			r.raiseOften(at, float64(times))
			r.timeStage += times
			return
		}
		at := r.raiseAt
		r.raiseAt = r.raiseAt.Add(period)
		r.raise(at)
		r.timeStage++
	}
}

// step is what the next increase adds to the target rate. Fast recovery adds nothing while neither counter has reached the
// threshold; hyper additive increase is when both are beyond it. A counter that is off does not count.
func (r *ReactionPoint) step() float64 {
	p := r.par
	most, least := max(r.timeStage, r.byteStage), min(r.timeStage, r.byteStage)
	if p.TimeReset == 0 || p.ByteReset == 0 {
		least = most
	}
	switch threshold := int64(p.Threshold); {
	case most < threshold:
		return 0
	case least > threshold:
		return p.HAIRate
	}
	return p.AIRate
}

// raise moves the current rate half of the way to the target rate.
func (r *ReactionPoint) raise(now clock.Time) {
	r.rate.Target = min(r.rate.Target+r.step(), r.par.LineRate)
	r.change(now, (r.rate.Current+r.rate.Target)/2)
	r.release()
}

// raiseOften does many increases behind so many that the stage does not change any more. Each halves the distance of the
// current rate from the target rate, after what it adds to that; the target rate may reach the line rate on the way, with less
// than a step in the end, or have reached it before.
func (r *ReactionPoint) raiseOften(now clock.Time, times float64) {
	step, room, behind := r.step(), r.par.LineRate-r.rate.Target, r.rate.Target-r.rate.Current
	whole := times
	if step > 0 {
		whole = min(times, max(0, math.Floor(room/step)))
	}
	r.rate.Target += step * whole
	behind = step + (behind-step)*math.Exp2(-whole)
	if rest := times - whole; rest > 0 {
		behind = (behind + r.par.LineRate - r.rate.Target) * math.Exp2(-rest)
		r.rate.Target = r.par.LineRate
	}
	r.change(now, r.rate.Target-behind)
	r.release()
}

// change changes the current rate. What has left just before is as if it had left at the new one.
func (r *ReactionPoint) change(now clock.Time, rate float64) {
	if r.next > now {
		r.next = max(now, r.next.Add(takes(r.charged, rate)-takes(r.charged, r.rate.Current)))
	}
	r.rate.Current = rate
}

// takes returns how long so many bytes take at a rate.
func takes(bytes int, rate float64) time.Duration { return time.Duration(float64(bytes) * 8000 / rate) }

// release ends the limit if the current rate is back.
func (r *ReactionPoint) release() {
	if r.rate.Current > r.par.LineRate-unlimited {
		r.on = false
	}
}

// Turn returns from when on packets may leave, as NextSend does, and how many bytes may leave in a turn now if some may: what the rate
// has for slack, and for the time that the turn is late, up to slack.
func (r *ReactionPoint) Turn(now clock.Time, slack time.Duration) (from clock.Time, bytes int) {
	from = r.NextSend(now)
	if !r.on {
		return from, math.MaxInt
	}
	late := min(now.Sub(r.next), slack)
	return from, int(r.rate.Current*float64(max(0, late+slack))/8000) + 1
}

// NextSend returns from when on packets may leave: now, or later if the rate is limited. What is later may be the time of an
// increase, after which they may leave earlier: it is to be asked again then.
func (r *ReactionPoint) NextSend(now clock.Time) clock.Time {
	if !r.on {
		return now
	}
	if r.advance(now); !r.on || r.next <= now {
		return now
	}
	return clock.Min(r.next, r.raiseAt)
}

// Sent says that so many bytes have left, with all their headers, retransmissions among them. Of the time by which the turn
// was late as much as slack is made up for.
func (r *ReactionPoint) Sent(now clock.Time, bytes int, slack time.Duration) {
	if !r.on {
		return
	}
	if r.next <= now {
		r.charged = 0
	}
	r.charged += bytes
	r.next = max(r.next, now.Add(-slack)).Add(takes(bytes, r.rate.Current))
	if r.par.ByteReset == 0 {
		return
	}
	for r.bytesLeft -= int64(bytes); r.bytesLeft <= 0 && r.on; r.bytesLeft += r.par.ByteReset {
		r.raise(now)
		r.byteStage++
	}
}
