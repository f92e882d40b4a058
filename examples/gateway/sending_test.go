package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoStopsReadingIsLeft: a connection whose client makes no room ends between sendWithin and a sixtieth more, however often it
// was written to before; one whose client reads, if slowly, goes on.
func TestWhoStopsReadingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, client := net.Pipe()
		conn := &sending{Conn: here}
		defer conn.Close()
		read := make(chan struct{})
		go func() {
			defer close(read)
			for range 30 {
				time.Sleep(sendWithin * 9 / 10) // slow, and never too slow
				if _, err := io.ReadFull(client, make([]byte, 4)); err != nil {
					t.Error(err)
				}
			}
		}()
		for range 30 {
			if _, err := conn.Write([]byte("slow")); err != nil {
				t.Fatalf("a client that reads: %v", err)
			}
		}
		<-read
		began := time.Now()
		_, err := conn.Write([]byte("lost"))
		if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took < sendWithin || took > sendWithin+sendWithin/60 {
			t.Errorf("a client that does not: %v after %v", err, took)
		}
	})
}

// TestADeadlineOfOthersHolds: what the server sets for a connection is not forgotten, and what is set after it is.
func TestADeadlineOfOthersHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, client := net.Pipe()
		defer client.Close()
		conn := &sending{Conn: here}
		defer conn.Close()
		for _, set := range []func(time.Time) error{conn.SetDeadline, conn.SetWriteDeadline} {
			go func() { _, _ = io.ReadFull(client, make([]byte, 2)) }()
			if _, err := conn.Write([]byte("ok")); err != nil {
				t.Fatal(err)
			}
			blocked := make(chan error)
			go func() { _, err := conn.Write([]byte("ok")); blocked <- err }()
			synctest.Wait()
			began := time.Now()
			if err := set(began.Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if err := <-blocked; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("%v after %v, want the deadline after 1s", err, time.Since(began))
			}
			began = time.Now() // ours is set anew, for theirs has replaced it
			if _, err := conn.Write([]byte("ok")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < sendWithin {
				t.Errorf("%v after %v, want the deadline after %v", err, time.Since(began), sendWithin)
			}
			if err := set(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestConnectionsOfTheGatewayCloseInHalves: the server finds what it needs so that who is refused while sending sees the answer.
func TestConnectionsOfTheGatewayCloseInHalves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	halves := make(chan error, 1)
	server := &http.Server{Handler: http.NotFoundHandler(), ConnState: func(conn net.Conn, state http.ConnState) {
		if state == http.StateNew {
			half, ok := conn.(interface{ CloseWrite() error })
			if !ok {
				halves <- errors.New("there is no CloseWrite")
				return
			}
			halves <- half.CloseWrite()
		}
	}}
	go func() { _ = server.Serve(impatient{l}) }()
	defer server.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-halves; err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want the end of what is sent", err)
	}
}
