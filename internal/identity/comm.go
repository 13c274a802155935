package identity

import "strings"

// maxComm is how much the kernel keeps of a task's own name, in bytes.
const maxComm = 15

// Comm is a task's own name, of what /proc/TID/comm has. Any other task has no more than that;
// of a thread of the kernel the file has a longer name, and behind that of a worker its
// work, as "kworker/1:1-mm_percpu_wq".
func Comm(text string) string {
	name := strings.TrimSuffix(text, "\n")
	if number, is := strings.CutPrefix(name, "kworker/"); is && number != "" && strings.Contains("0123456789u", number[:1]) {
		if work := strings.IndexAny(name, "-+"); work >= 0 {
			name = name[:work]
		}
	}
	return name[:min(len(name), maxComm)]
}
