package table

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is a table that reads well both as plain text and as markdown. The first Left columns are aligned to the left, the
// others, which hold figures, to the right.
type Table struct {
	Left   int
	Header []string
	Rows   [][]string
}

// Add appends a row. A row that is shorter than the header ends with empty cells; what is beyond the header is an error of
// the caller's that Markdown shows rather than hides.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Markdown writes the table.
func (t *Table) Markdown(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	t.line(&b, widths, t.Header)
	b.WriteString("|")
	for i, width := range widths {
		if i < t.Left {
			b.WriteString(strings.Repeat("-", width+2) + "|")
		} else {
			b.WriteString(strings.Repeat("-", width+1) + ":|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		t.line(&b, widths, row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths returns how wide each column is, in characters.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *Table) line(b *strings.Builder, widths []int, cells []string) {
	b.WriteString("|")
	for i, width := range widths {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
		if i < t.Left {
			fmt.Fprintf(b, " %s%s |", cell, pad)
		} else {
			fmt.Fprintf(b, " %s%s |", pad, cell)
		}
	}
	b.WriteString("\n")
}
