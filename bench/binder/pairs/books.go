package pairs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// statsFile is where the kernel shows what the binder driver holds.
const statsFile = "/sys/kernel/debug/binder/stats"

// maxStats bounds what is read of it.
const maxStats = 16 << 20

// Books is what the driver holds, of all processes and devices together.
type Books struct {
	Processes    int `json:"processes"`
	Threads      int `json:"threads"`
	Nodes        int `json:"nodes"`
	References   int `json:"references"`
	Deaths       int `json:"death_notifications"`
	Transactions int `json:"transactions"`
	Buffers      int `json:"buffers"`
}

// field is the number that a line of the file belongs to.
func (b *Books) field(line string) *int {
	for name, field := range map[string]*int{
		"proc": &b.Processes, "thread": &b.Threads, "node": &b.Nodes, "ref": &b.References,
		"death": &b.Deaths, "transaction": &b.Transactions,
	} {
		if strings.HasPrefix(line, name+": active ") {
			return field
		}
	}
	return nil
}

// readBooks understands the file: first the sums, of which those that never were
// anything but 0 are left out, then what each process holds.
func readBooks(text string) (Books, error) {
	var b Books
	if !strings.HasPrefix(text, "binder stats:") {
		return b, errors.New(statsFile + ": nothing in it that is known")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if field := b.field(line); field != nil && len(words) == 5 {
			n, err := strconv.Atoi(words[2])
			if err != nil {
				return b, fmt.Errorf("%s: line %q: %w", statsFile, line, err)
			}
			*field = n
		}
		if len(words) == 2 && words[0] == "buffers:" {
			n, err := strconv.Atoi(words[1])
			if err != nil {
				return b, fmt.Errorf("%s: line %q: %w", statsFile, line, err)
			}
			b.Buffers += n
		}
	}
	return b, nil
}

// OpenBooks reads the books as they are now.
func OpenBooks() (Books, error) {
	f, err := os.Open(statsFile)
	if err != nil {
		return Books{}, fmt.Errorf("what the driver holds: %w; mount debugfs", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStats))
	if err != nil {
		return Books{}, err
	}
	return readBooks(string(text))
}

// Left is what the driver holds more than before. It is asked again for a
// second: the driver clears up after a process when it has time.
func Left(before Books) (left Books, err error) {
	for range 20 {
		now, err := OpenBooks()
		if err != nil {
			return left, err
		}
		left = Books{now.Processes - before.Processes, now.Threads - before.Threads, now.Nodes - before.Nodes,
			now.References - before.References, now.Deaths - before.Deaths, now.Transactions - before.Transactions,
			now.Buffers - before.Buffers}
		if left == (Books{}) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return left, nil
}
