package pumpkin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
)

// ErrNeedsToken says that the admin endpoint would be open to other machines with nothing but a token that was made up.
var ErrNeedsToken = errors.New("without a token of your own the admin endpoint may listen on a loopback address only; " +
	"set pumpkin.admin.token_file or " + TokenEnv + ", or listen on 127.0.0.1")

// checkAdminAddress refuses, with ErrNeedsToken, an address of the admin listener that other machines can reach, unless
// ownToken says that the operator has chosen the token. The address is HOST:PORT, or unix:PATH.
func checkAdminAddress(addr string, ownToken bool) error {
	if ownToken || strings.HasPrefix(addr, "unix:") {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil // no address at all: listening says so better
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("pumpkin: admin listener on %s: %w", addr, ErrNeedsToken)
}

// ListenAdmin opens the listener of the admin endpoint: HOST:PORT, or unix:PATH for a socket that only the own user can open
// (mode 0600; a socket that a process before has left is replaced). Where the token
// was made up and is not the operator's own, an address that other machines can reach is refused with ErrNeedsToken.
func ListenAdmin(addr string, ownToken bool) (net.Listener, error) {
	if err := checkAdminAddress(addr, ownToken); err != nil {
		return nil, err
	}
	path, unix := strings.CutPrefix(addr, "unix:")
	if !unix {
		return net.Listen("tcp", addr)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("pumpkin: admin listener on %s: another program listens there", addr)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("pumpkin: admin listener: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("pumpkin: admin listener: %w", err)
	}
	return l, nil
}
