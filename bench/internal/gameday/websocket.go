package gameday

import (
	"bufio"
	"crypto/sha1" // RFC 6455 asks for it; it protects nothing here
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// accept is the answer to a WebSocket key (RFC 6455, section 4.2.2).
func accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// readFrame reads a text frame of at most 125 bytes.
func readFrame(r *bufio.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	n, masked := int(head[1]&0x7f), head[1]&0x80 != 0
	if head[0] != 0x81 || n > 125 {
		return "", errors.New("gameday: no short text frame")
	}
	var mask [4]byte
	if masked {
		if _, err := io.ReadFull(r, mask[:]); err != nil {
			return "", err
		}
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return string(text), nil
}

// writeFrame writes a text frame of at most 125 bytes; clients have to mask theirs.
func writeFrame(w io.Writer, text string, masked bool) error {
	frame := []byte{0x81, byte(len(text))}
	mask := [4]byte{}
	if masked {
		mask = [4]byte{7, 21, 42, 84}
		frame[1] |= 0x80
		frame = append(frame, mask[:]...)
	}
	for i := range len(text) {
		frame = append(frame, text[i]^mask[i%4])
	}
	_, err := w.Write(frame)
	return err
}

// echo says back what it is told.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
		accept(r.Header.Get("Sec-WebSocket-Key"))+"\r\n\r\n")
	for {
		text, err := readFrame(rw.Reader)
		if err != nil || writeFrame(conn, text, false) != nil {
			return
		}
	}
}

// talk opens a WebSocket at a gateway and says something twice a second until the connection breaks or stop is closed. It calls
// answered for each answer, and reports whether the connection broke.
func talk(gateway, key string, answered func(), stop <-chan struct{}) (broke bool) {
	conn, err := net.DialTimeout("tcp", gateway, 5*time.Second)
	if err != nil {
		return true
	}
	defer conn.Close()
	const nonce = "dGhlIGdhbWUgZGF5IGF0IDc="
	io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: shop\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: "+nonce+"\r\nX-API-Key: "+key+"\r\n\r\n")
	r := bufio.NewReader(conn)
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return true
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Accept") != accept(nonce) {
		return true
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return false
		case <-tick.C:
		}
		if writeFrame(conn, "hello", true) != nil {
			return true
		}
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if text, err := readFrame(r); err != nil || text != "hello" {
			return true
		}
		answered()
	}
}
