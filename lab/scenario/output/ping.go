package output

import (
	"fmt"
	"strings"
)

// Ping reads the round trip times of "ping" in ms, in the order of arrival, and
// how many requests stayed without an answer.
func Ping(text string) (Samples, int, error) {
	var times Samples
	for _, line := range strings.Split(text, "\n") {
		rest, ok := after(line, " time=")
		if !ok {
			continue
		}
		value, unit, _ := strings.Cut(rest, " ")
		ms, err := number("ping", "a round trip time", value)
		if err != nil {
			return nil, 0, err
		}
		if !strings.HasPrefix(unit, "ms") {
			return nil, 0, fmt.Errorf("ping: %q: must be in ms", clip(line))
		}
		times = append(times, ms)
	}
	sent, err := pingSent(text)
	if err != nil {
		return nil, 0, err
	}
	return times, max(sent-len(times), 0), nil
}

// pingSent reads "200 packets transmitted" of the summary.
func pingSent(text string) (int, error) {
	head, _, ok := strings.Cut(text, " packets transmitted")
	if !ok {
		return 0, fmt.Errorf("ping: no summary in its output: %q", clip(text))
	}
	sent, err := number("ping", "packets transmitted", head[strings.LastIndexByte(head, '\n')+1:])
	if err != nil || sent > 1e9 {
		return 0, fmt.Errorf("ping: packets transmitted: %q is not a count", clip(head[strings.LastIndexByte(head, '\n')+1:]))
	}
	return int(sent), nil
}
