package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	mostLines  = 1 << 20
	mostPeriod = 24 * time.Hour
)

// readTrace returns the sender that a file describes: lines of "seconds,Mbit/s", or of milliseconds at which a packet can be sent.
func readTrace(name string) (sender, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer file.Close()
	sender, err := parseTrace(file)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", name, err)
	}
	return sender, nil
}

func parseTrace(reader io.Reader) (sender, error) {
	var lines []string
	scanner := bufio.NewScanner(reader)
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
		if len(lines) > mostLines {
			return nil, fmt.Errorf("more than %d lines", mostLines)
		}
	}
	switch {
	case scanner.Err() != nil:
		return nil, scanner.Err()
	case len(lines) == 0:
		return nil, errors.New("no line")
	case strings.Contains(lines[0], ","):
		return parseSteps(lines)
	}
	return parseOpportunities(lines)
}

// parseOpportunities reads the format of mahimahi: in each line the millisecond of an opportunity to send 1,500 bytes. The file
// repeats after its last line.
func parseOpportunities(lines []string) (sender, error) {
	found := &opportunities{times: make([]time.Duration, 0, len(lines)), unused: opportunityBytes}
	for number, line := range lines {
		value, err := strconv.ParseUint(line, 10, 32)
		at := time.Duration(value) * time.Millisecond
		if err != nil || at > mostPeriod {
			return nil, fmt.Errorf("line %d is %q: write whole milliseconds, at most a day", number+1, line)
		}
		if number > 0 && at < found.times[number-1] {
			return nil, fmt.Errorf("line %d is %q: it is before the line above", number+1, line)
		}
		found.times = append(found.times, at)
	}
	if found.period() == 0 {
		return nil, errors.New("all lines are 0: the last one is when the trace repeats")
	}
	return found, nil
}

// parseSteps reads lines of "seconds,Mbit/s", perhaps below a header. The last rate holds as long as the one before it, and then the
// file repeats.
func parseSteps(lines []string) (sender, error) {
	if _, _, err := parseStep(lines[0]); err != nil && len(lines) > 1 {
		lines = lines[1:]
	}
	found := &steps{}
	for number, line := range lines {
		at, rate, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("row %d is %q: write seconds and Mbit/s, as in 1.5,20", number+1, line)
		}
		if number > 0 && at <= found.times[number-1] {
			return nil, fmt.Errorf("row %d is %q: it is not after the row above", number+1, line)
		}
		found.times, found.rates = append(found.times, at), append(found.rates, rate)
	}
	if found.times[0] != 0 {
		return nil, fmt.Errorf("row 1 is %q: the first rate begins at 0", lines[0])
	}
	last := len(lines) - 1
	found.period = time.Second
	if last > 0 {
		found.period = 2*found.times[last] - found.times[last-1]
	}
	for index, rate := range found.rates {
		found.bits += rate * (found.end(index) - found.times[index]).Seconds()
	}
	if found.bits < bits(opportunityBytes) {
		return nil, errors.New("it sends less than one packet before it repeats")
	}
	return found, nil
}

func parseStep(line string) (at time.Duration, rate float64, err error) {
	first, second, _ := strings.Cut(line, ",")
	when, errWhen := strconv.ParseFloat(strings.TrimSpace(first), 64)
	megabits, errRate := strconv.ParseFloat(strings.TrimSpace(second), 64)
	inRange := when >= 0 && when <= mostPeriod.Seconds() && megabits >= 0 && megabits <= mostBits/1e6
	if err := errors.Join(errWhen, errRate); err != nil || !inRange || math.IsNaN(when+megabits) {
		return 0, 0, errors.New("no step")
	}
	return seconds(when), megabits * 1e6, nil
}
