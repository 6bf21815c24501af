package link

import "time"

// waiting is a packet that has not been sent completely.
type waiting struct {
	until time.Duration
	size  int
}

// queue holds the packets that wait, oldest first.
type queue struct {
	all   []waiting
	first int
	bytes int
}

func (q *queue) packets() int { return len(q.all) - q.first }

func (q *queue) join(packet waiting) {
	if len(q.all) == cap(q.all) && q.first > len(q.all)/2 {
		q.all = q.all[:copy(q.all, q.all[q.first:])]
		q.first = 0
	}
	q.all = append(q.all, packet)
	q.bytes += packet.size
}

// leave removes the packets that are sent by now.
func (q *queue) leave(now time.Duration) {
	for q.packets() > 0 && q.all[q.first].until <= now {
		q.bytes -= q.all[q.first].size
		q.first++
	}
	if q.packets() == 0 {
		q.all, q.first = q.all[:0], 0
	}
}
