package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a file. They are far above any real configuration, and keep what a hostile one can cost in time and stack
// small: the parser recurses once for each level, and a stack that overflows cannot be recovered.
const (
	maxBytes  = 1 << 20
	maxTokens = 30_000 // the parser's time grows with the square of the keys in one mapping
	maxDepth  = 16
)

// document turns the bytes of a file into the one mapping that it must hold. It returns nil when that is impossible, and
// has then said why.
func (p *problems) document(data []byte) ast.Node {
	text, ok := p.text(data)
	if !ok {
		return nil
	}
	file, err := parse(text, p)
	if file == nil {
		if err != nil {
			p.syntax(err)
		}
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			return doc.Body
		}
	}
	p.add(1, "the file is empty", "write at least one section, such as limits, or run without a file")
	return nil
}

// text checks that data is text at all and gives every line the same ending, so that lines are counted as editors do.
func (p *problems) text(data []byte) (string, bool) {
	if len(data) > maxBytes {
		p.add(0, fmt.Sprintf("the file is longer than %d KiB", maxBytes>>10), "is this the right file? shorten it")
		return "", false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line, rest := 1, data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			p.add(line, "this line is not UTF-8", "save the file as UTF-8 text")
			return "", false
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r == 0x7f, r == 0x85, r == 0x2028, r == 0x2029:
			p.add(line, fmt.Sprintf("this line holds the control character %U", r), "remove it")
			return "", false
		case r == '\n', r == '\r' && (n == len(rest) || rest[n] != '\n'):
			line++
		}
		rest = rest[n:]
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	return strings.ReplaceAll(text, "\r", "\n"), true
}

// parse runs the YAML library on text, after the parts of YAML that a configuration does not need have been refused. A nil
// file without an error means that the reason has been added already.
func parse(text string, p *problems) (*ast.File, error) {
	return guarded(func() (*ast.File, error) {
		tokens := lexer.Tokenize(text)
		before := len(p.found)
		p.plain(tokens)
		if len(p.found) > before {
			return nil, nil
		}
		// Duplicate keys are found while decoding, where both lines are known.
		return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	})
}

// guarded makes a panic an error: the library has panicked on malformed input before.
func guarded(parse func() (*ast.File, error)) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, errors.New("this cannot be understood")
		}
	}()
	return parse()
}

// unwanted are the kinds of tokens that a configuration never needs. Without anchors and aliases no small file can grow
// into a large one; without tags and merge keys what stands there is what is meant.
var unwanted = map[token.Type][2]string{
	token.AnchorType:     {"anchors (&) are not supported", "write the value out, or quote the text"},
	token.AliasType:      {"aliases (*) are not supported", "write the value out, or quote the text"},
	token.MergeKeyType:   {"merge keys (<<) are not supported", "write the keys out"},
	token.TagType:        {"tags (!) are not supported", "remove the tag, or quote the text"},
	token.DirectiveType:  {"YAML directives (%) are not supported", "remove the line"},
	token.MappingKeyType: {"explicit keys (?) are not supported", "write key: value"},
}

// plain refuses the tokens that are unwanted, more than one document, and nesting beyond any meaning.
func (p *problems) plain(tokens token.Tokens) {
	if len(tokens) > maxTokens {
		p.add(0, fmt.Sprintf("the file has more than %d words and signs", maxTokens), "is this the right file? shorten it")
		return
	}
	depth, dashes, line, content, ended := 0, 0, 0, false, false
	for _, t := range tokens {
		at := lineOf(t)
		if why, bad := unwanted[t.Type]; bad {
			p.add(at, why[0], why[1])
			return
		}
		if ended && t.Type != token.CommentType && t.Type != token.DocumentEndType {
			p.add(at, "stands after the end of the document (...), where nothing is read", "remove the line with the three dots")
			return
		}
		ended = ended || t.Type == token.DocumentEndType
		if at != line {
			line, dashes = at, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		case token.DocumentHeaderType:
			if content {
				p.add(at, "a second document begins here", "keep one document in the file")
				return
			}
		}
		if depth > maxDepth || dashes > maxDepth {
			p.add(at, "is nested too deeply", "a configuration needs four levels")
			return
		}
		content = content || t.Type != token.CommentType
	}
}

// syntax reports what the YAML library could not read.
func (p *problems) syntax(err error) {
	at, what := 1, err.Error()
	var fault yaml.Error
	if errors.As(err, &fault) {
		what = fault.GetMessage()
		if t := fault.GetToken(); t != nil && t.Position != nil {
			at = lineOf(t)
			at = max(at, 1)
		}
	}
	mend := "check the indentation, brackets and quotes here"
	switch {
	case strings.Contains(what, "must be specified"), strings.Contains(what, "reserved character"):
		mend = "put text that holds any of {}[],@` in quotes"
	case strings.ContainsAny(what, "\t") || strings.Contains(what, "tab"):
		mend = "indent with spaces"
	case strings.Contains(what, "not allowed in this context"):
		mend = "check the indentation, and put text that holds a colon in quotes"
	}
	what, _, _ = strings.Cut(what, "\n")
	what = strings.NewReplacer(";", ",", "'\t'", "tab", "\t", " ").Replace(what)
	p.add(at, "not valid YAML: "+what, mend)
}
