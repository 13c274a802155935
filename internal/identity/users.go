package identity

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Users knows the names of users from the machine's own file. Users of a
// directory service are not in it: rules can name them by number.
type Users struct {
	Path  string    // the file, /etc/passwd
	read  time.Time // modification time of what was read
	names map[uint32]string
}

// maxPasswd bounds what is read of the file, in bytes.
const maxPasswd = 4 << 20

// Name is the user's name, empty when it has none. The file is read again
// when it has changed, so a user made later is known at once.
func (u *Users) Name(uid uint32) string {
	if info, err := os.Stat(u.Path); err == nil && !info.ModTime().Equal(u.read) && info.Size() <= maxPasswd {
		if data, err := os.ReadFile(u.Path); err == nil {
			u.names, u.read = parsePasswd(string(data)), info.ModTime()
		}
	}
	return u.names[uid]
}

// parsePasswd reads lines of name:password:uid:... The first name of a UID
// counts.
func parsePasswd(data string) map[uint32]string {
	names := map[uint32]string{}
	for line := range strings.Lines(data) {
		fields := strings.SplitN(line, ":", 4)
		if len(fields) < 4 || fields[0] == "" {
			continue
		}
		uid, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil {
			continue
		}
		if _, known := names[uint32(uid)]; !known {
			names[uint32(uid)] = fields[0]
		}
	}
	return names
}
