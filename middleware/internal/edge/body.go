package edge

import (
	"io"
	"net/http"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// pace slows the body of r down to what limits on bytes allow. It is for bodies that do not say how long they are; the
// others were charged whole when the request was admitted. A client that has to be slowed down must not hold a place for it
// that others could use: when its body waits for the first time, the permit gives its place back.
func (e *Edge) pace(r *http.Request, req shed.Request, permit shed.Permit) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	if flow := e.shedder.Flow(shed.RequestBytes, req); flow != nil {
		flow.BeforeWait = permit.Detach
		r.Body = paced{limits.NewReader(r.Context(), r.Body, flow), r.Body}
	}
}

// paced is a body that is read at the pace of its limits and closed as before.
type paced struct {
	io.Reader
	io.Closer
}
