package peer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// maxMessage bounds one message: some million samples.
const maxMessage = 128 << 20

// envelope holds an answer, or why there is none.
type envelope struct {
	Fault string          `json:"fault,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// writeMessage writes a length and a text.
func writeMessage(w io.Writer, text []byte) error {
	if len(text) > maxMessage {
		return fmt.Errorf("message of %d bytes: at most %d", len(text), maxMessage)
	}
	_, err := w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// readMessage reads what writeMessage wrote. It takes memory for what has
// arrived, not for what was announced.
func readMessage(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > maxMessage {
		return nil, fmt.Errorf("message of %d bytes: at most %d", n, maxMessage)
	}
	var text bytes.Buffer
	if got, err := io.CopyN(&text, r, n); err != nil {
		return nil, fmt.Errorf("message of %d bytes: it breaks off after %d: %w", n, got, err)
	}
	return text.Bytes(), nil
}
