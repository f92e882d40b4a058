package echomw

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/middleware/internal/edge"
)

// echosHandler is where the code of Echo's own error handler begins, which is all that functions can be compared by.
var echosHandler = reflect.ValueOf(new(echo.Echo).DefaultHTTPErrorHandler).Pointer()

// foreseeable reports whether Echo would write answers as they stand ready: the application has an error handler or an encoder of its
// own if not, or somebody wants JSON to be indented.
func foreseeable(c echo.Context) bool {
	e := c.Echo()
	if e == nil || e.Debug || e.HTTPErrorHandler == nil {
		return false
	}
	_, echos := e.JSONSerializer.(*echo.DefaultJSONSerializer)
	return echos && reflect.ValueOf(e.HTTPErrorHandler).Pointer() == echosHandler &&
		!strings.Contains(c.Request().URL.RawQuery, "pretty")
}

// write answers as Echo's own error handler would, without the cost of encoding.
func write(c echo.Context, answer *edge.Answer) {
	w := c.Response()
	w.WriteHeader(answer.Problem.Status)
	if c.Request().Method != http.MethodHead {
		_, _ = w.Write(answer.Body) // nobody can be told if the client is gone
	}
}
