package broker

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"tierbench.io/client/internal/contract"
)

const leastSlots = 64

// limits are the maximum numbers of messages of a publisher in flight, and unacknowledged (0: unlimited).
type limits struct{ inFlight, unacknowledged int }

// ledger counts the messages of one publisher: sent, received by each subscriber, and in flight.
type ledger struct {
	mutex          sync.Mutex
	start          time.Time
	width          int // bytes of the number that fit into a message
	limits         limits
	answered       bool // whether the broker acknowledges
	alone          bool // without subscribers: messages are in flight until they are acknowledged
	deliveries     int  // of each message
	slots          []slot
	first          uint64   // number of the first message; arrivals of earlier ones do not count
	next           uint64   // number of the next message
	newest         []uint64 // of those that arrived at each subscriber, plus one
	inFlight       int
	unacknowledged int
	refused        int64
	credit         chan struct{}
	release        func()        // frees an engine's window of messages that count as lost; nil without an engine
	progress       time.Duration // when a message was last sent on an idle line, or arrived
	lastSend       time.Duration
	lastCome       time.Duration
	counts         contract.Exchange
	roundTrip      contract.Recorder
	actual         contract.Recorder
	acks           contract.Recorder
	series         *series
}

// newLedger returns a ledger for messages of at least size bytes, numbered from first. answered means that the broker
// acknowledges each message. to is their audience.
func newLedger(start time.Time, first uint64, size int, limits limits, answered bool, to audience) *ledger {
	slots := max(leastSlots, 1<<bits.Len(uint(2*limits.inFlight-1)))
	made := &ledger{
		start: start, width: min(size, numberBytes), limits: limits, answered: answered,
		alone: to.subscribers == 0, deliveries: to.deliveries(), newest: make([]uint64, to.subscribers),
		slots: make([]slot, slots), first: first, next: first, credit: make(chan struct{}, 1), series: newSeries(),
	}
	if !made.alone {
		made.counts.Arrivals = &contract.Arrivals{}
	}
	return made
}

func (l *ledger) now() time.Duration { return time.Since(l.start) }

// releaseBy sets what frees the window of an engine.
func (l *ledger) releaseBy(release func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.release = release
}

// acquire waits until another message may be in flight.
func (l *ledger) acquire(ctx context.Context) error {
	for {
		l.mutex.Lock()
		full := l.inFlight >= l.limits.inFlight || l.limits.unacknowledged > 0 && l.unacknowledged >= l.limits.unacknowledged
		l.mutex.Unlock()
		if !full {
			return nil
		}
		select {
		case <-l.credit:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// upcoming returns the number of the next message.
func (l *ledger) upcoming() uint64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.next
}

// send records a message that is sent now. It returns the number of the message, and its slot with a buffer. An intended time of
// 0 means now.
func (l *ledger) send(intended time.Duration, late time.Duration) (uint64, *slot) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one := l.depart(l.now(), intended, late)
	return one.number, one
}

// sent records a message that an engine has sent at a time. It reports whether its number is that of the next message.
func (l *ledger) sent(number uint64, content []byte, at time.Time, intended, late time.Duration) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if number != l.next {
		return false
	}
	l.depart(at.Sub(l.start), intended, late).buffer = content
	return true
}

// depart records the next message.
func (l *ledger) depart(now, intended, late time.Duration) *slot {
	if intended == 0 {
		intended = now
	}
	one := &l.slots[l.next&uint64(len(l.slots)-1)]
	l.settle(one)
	l.forget(one)
	*one = slot{number: l.next, intended: intended, actual: now, state: pending, buffer: one.buffer}
	if l.inFlight == 0 {
		l.progress = now
	}
	if now-intended > late {
		l.counts.LateSends++
	}
	l.next++
	if one.unacknowledged = l.answered; one.unacknowledged {
		l.unacknowledged++
	}
	if l.alone && !l.answered {
		one.state = done // there will be no event for it
	} else {
		l.inFlight++
	}
	l.lastSend = now
	l.counts.Sent++
	return one
}

// arrive records a message that arrived at a subscriber at a time.
func (l *ledger) arrive(message []byte, subscriber int, at time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.record(l.read(message), subscriber, len(message), at.Sub(l.start))
}

// arrived records a message that an engine has received at a time. low is the part of its number that fits into it.
func (l *ledger) arrived(low uint64, at time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	number := l.whole(low)
	l.record(number, 0, len(l.slots[number&uint64(len(l.slots)-1)].buffer), at.Sub(l.start))
}

// record records a message that arrived at a subscriber. The message is complete when all of its deliveries have
// arrived.
func (l *ledger) record(number uint64, subscriber, bytes int, now time.Duration) {
	if number < l.first {
		return
	}
	l.progress = now
	if number >= l.next {
		l.fail(contract.Corrupt, 1)
		return
	}
	one := &l.slots[number&uint64(len(l.slots)-1)]
	if one.number != number || one.state == done || one.state == free || one.hasArrivedAt(subscriber) {
		l.counts.Duplicated++
		return
	}
	one.arrived |= 1 << subscriber
	l.lastCome = now
	if l.missing(one) == 0 {
		l.finish(one, now)
		l.signal()
	}
	if number+1 < l.newest[subscriber] {
		l.counts.OutOfOrder++
	}
	l.newest[subscriber] = max(l.newest[subscriber], number+1)
	l.counts.Received++
	l.counts.ReceivedBytes += int64(bytes)
	l.actual.Add((now - one.actual).Nanoseconds())
	l.log(l.roundTrip.Add((now - one.intended).Nanoseconds()))
}

func (l *ledger) take() *contract.Distributions {
	return &contract.Distributions{RoundTrip: l.roundTrip.Take(), RoundTripActual: l.actual.Take(), Acknowledge: l.acks.Take()}
}

// distributions returns the distributions of what arrived since the last call.
func (l *ledger) distributions() *contract.Distributions {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.take()
}

// restart returns the distributions of everything since the last restart, including sealed segments.
func (l *ledger) restart() *contract.Distributions {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	total := l.take()
	for _, segment := range l.series.segments {
		merge(total, segment)
	}
	l.series = newSeries()
	return total
}

// acknowledge records the acknowledgement of a message by the broker.
func (l *ledger) acknowledge(number uint64, at time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if number < l.first {
		return
	}
	l.counts.Acknowledged++
	one := &l.slots[number&uint64(len(l.slots)-1)]
	if one.number != number {
		return
	}
	now := at.Sub(l.start)
	one.acknowledged = true
	l.forget(one)
	bucket := l.acks.Add((now - one.actual).Nanoseconds())
	if l.alone {
		l.counts.AcknowledgedBytes += int64(len(one.buffer))
		l.finish(one, now)
		l.log(bucket)
	}
	if l.alone || l.limits.unacknowledged > 0 || l.counts.Acknowledged == l.counts.Sent {
		l.signal()
	}
}

// confirm records that the broker has received all messages that it does not acknowledge.
func (l *ledger) confirm(bytes int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.counts.Acknowledged, l.counts.AcknowledgedBytes, l.lastCome = l.counts.Sent, bytes, l.now()
}

// forget stops waiting for the acknowledgement of a message.
func (l *ledger) forget(one *slot) {
	if one.unacknowledged {
		one.unacknowledged = false
		l.unacknowledged--
	}
}

// finish records that a message is complete.
func (l *ledger) finish(one *slot, now time.Duration) {
	if one.state == pending {
		l.inFlight--
	}
	one.state = done
	l.progress, l.lastCome = now, now
}

// log records the bucket of an operation's time, for the detection of a steady state.
func (l *ledger) log(bucket int) {
	if l.series.add(int64(bucket)) {
		l.series.seal(l.take())
	}
}

// fail counts errors by cause.
func (l *ledger) fail(cause string, number int64) {
	if l.counts.ErrorCauses == nil {
		l.counts.ErrorCauses = map[string]int64{}
	}
	l.counts.Errors += number
	l.counts.ErrorCauses[cause] += number
}

// corrupt counts a message that cannot be decoded, or differs from the sent one.
func (l *ledger) corrupt() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.fail(contract.Corrupt, 1)
}

// expire counts all messages in flight as lost if none has arrived within the timeout. It reports whether messages are still
// awaited.
func (l *ledger) expire(timeout time.Duration) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.now()-l.progress < timeout {
		return l.inFlight > 0 || l.answered && l.counts.Acknowledged+l.refused < l.counts.Sent
	}
	if l.release != nil && (l.inFlight+l.unacknowledged > 0 || l.alone && !l.answered) {
		go l.release()
	}
	for index := range l.slots {
		l.forget(&l.slots[index])
		if l.slots[index].state == pending {
			l.slots[index].state = givenUp
		}
	}
	l.inFlight = 0
	l.signal()
	return false
}

func (l *ledger) signal() {
	select {
	case l.credit <- struct{}{}:
	default:
	}
}

// drain waits until no message is in flight.
func (l *ledger) drain(ctx context.Context, timeout time.Duration) {
	for ctx.Err() == nil && l.expire(timeout) {
		select {
		case <-l.credit:
		case <-ctx.Done():
		case <-time.After(timeout / 8):
		}
	}
}

// close settles all messages. It returns the counts, and the time at which the last message arrived: without subscribers the
// time of the last acknowledgement, and without both the time of the last send.
func (l *ledger) close() (contract.Exchange, time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for index := range l.slots {
		l.settle(&l.slots[index])
	}
	if !l.alone {
		l.counts.Lost = l.counts.Sent*int64(l.deliveries) - l.counts.Received
	}
	if silent := l.counts.Sent - l.counts.Acknowledged - l.refused; l.answered && silent > 0 {
		l.fail(contract.TimedOut, silent)
	}
	if l.lastCome == 0 {
		return l.counts, l.lastSend
	}
	return l.counts, l.lastCome
}
