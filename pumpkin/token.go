package pumpkin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// TokenEnv is the environment variable that programs read an admin token from when no file is configured.
const TokenEnv = "SPILLWAY_ADMIN_TOKEN"

const (
	minToken  = 32
	maxTokens = 64
	tokenHelp = "make one with: openssl rand -base64 32"
)

// Token is the right to use the admin endpoint. Only its digest is kept.
type Token struct {
	// Name is who bears it: the actor in the log and the audit trail.
	Name string
	// Digest is the SHA-256 of the token.
	Digest [sha256.Size]byte
	// ReadOnly tokens read items and the audit trail, and write nothing.
	ReadOnly bool
}

// NewToken returns the Token for a secret, which must have at least 32 printable characters. Errors do not contain it.
func NewToken(name, secret string) (Token, error) {
	if !isName(name) {
		return Token{}, fmt.Errorf("pumpkin: the token's name %q must be 1 to %d letters, digits, '.', '_' or '-'", name, maxName)
	}
	if err := checkToken(secret); err != nil {
		return Token{}, fmt.Errorf("pumpkin: token %w", err)
	}
	return Token{Name: name, Digest: sha256.Sum256([]byte(secret))}, nil
}

// AdminTokens finds the tokens for Config.Tokens: in the file if a path is given, else env if it is not empty, which is the
// value of the variable TokenEnv, else a random one, which is returned in made and which the program must print for its
// operator. A file that cannot be read or a token that is too weak is an error, never a reason to fall back on another
// source. Errors do not contain a token.
//
// The file is one token and nothing else, whose bearer is called "admin"; or lines of
//
//	NAME: TOKEN
//	NAME read: TOKEN           may only read
//	NAME: sha256:HEX           the digest instead of the token
//
// with empty lines and lines that begin with # left out. Several names make it possible to tell who did what, and to let
// a new token in before the old one goes.
func AdminTokens(file, env string) (tokens []Token, made string, err error) {
	switch {
	case file != "":
		content, err := readSmall(file)
		if err != nil {
			return nil, "", fmt.Errorf("pumpkin: admin token: %w; name a readable file in pumpkin.admin.token_file", err)
		}
		if tokens, err = parseTokens(content); err != nil {
			return nil, "", fmt.Errorf("pumpkin: admin token in %s %w", file, err)
		}
		return tokens, "", nil
	case env != "":
		if err := checkToken(env); err != nil {
			return nil, "", fmt.Errorf("pumpkin: admin token in %s %w", TokenEnv, err)
		}
		return []Token{{Name: soleToken, Digest: sha256.Sum256([]byte(env))}}, "", nil
	}
	made = rand.Text() + rand.Text() // 52 characters, 256 bits
	return []Token{{Name: soleToken, Digest: sha256.Sum256([]byte(made))}}, made, nil
}

// soleToken is who bears the only token, when it has no name.
const soleToken = "admin"

// parseTokens reads a token file. The message of an error goes on from "token in FILE".
func parseTokens(content string) ([]Token, error) {
	content = strings.TrimSuffix(strings.TrimSuffix(content, "\n"), "\r")
	if !strings.ContainsAny(content, " \n") { // one token as it stands; a named one has a space
		if err := checkToken(content); err != nil {
			return nil, err
		}
		return []Token{{Name: soleToken, Digest: sha256.Sum256([]byte(content))}}, nil
	}
	var tokens []Token
	for i, line := range strings.Split(content, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		t, err := parseToken(line)
		if err != nil {
			return nil, fmt.Errorf("(line %d) %w", i+1, err)
		}
		for _, other := range tokens {
			if other.Name == t.Name || other.Digest == t.Digest {
				return nil, fmt.Errorf("(line %d) has the name or the token of an earlier line; give every bearer one of their own", i+1)
			}
		}
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return nil, errors.New("is not there: the file has no token; " + tokenHelp)
	}
	if len(tokens) > maxTokens {
		return nil, fmt.Errorf("is one of %d; at most %d", len(tokens), maxTokens)
	}
	return tokens, nil
}

func parseToken(line string) (Token, error) {
	name, secret, ok := strings.Cut(line, ": ")
	name, readOnly := strings.CutSuffix(strings.TrimSpace(name), " read")
	if !ok || !isName(strings.TrimSpace(name)) {
		// The line is not shown: it may be a token.
		return Token{}, errors.New("has a space or a character that is not printable ASCII, and is not NAME: TOKEN either; " + tokenHelp)
	}
	t := Token{Name: strings.TrimSpace(name), ReadOnly: readOnly}
	secret = strings.TrimSpace(secret)
	if text, hashed := strings.CutPrefix(secret, "sha256:"); hashed {
		digest, err := hex.DecodeString(text)
		if err != nil || len(digest) != sha256.Size {
			return Token{}, errors.New("is no digest: write sha256: and 64 hexadecimal digits, as of printf %s TOKEN | sha256sum")
		}
		t.Digest = [sha256.Size]byte(digest)
		return t, nil
	}
	if err := checkToken(secret); err != nil {
		return Token{}, err
	}
	t.Digest = sha256.Sum256([]byte(secret))
	return t, nil
}

// readSmall reads a file that a person has written.
func readSmall(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const enough = 16 << 10 // bounds a path that leads to a device or a log
	content, err := io.ReadAll(io.LimitReader(f, enough+1))
	if err != nil {
		return "", err
	}
	if len(content) > enough {
		return "", fmt.Errorf("%s is longer than such a file can be (%d KiB)", file, enough>>10)
	}
	return string(content), nil
}

// checkToken refuses tokens that can be guessed or cannot be sent in a header. The message goes on from "token".
func checkToken(token string) error {
	if len(token) < minToken {
		return fmt.Errorf("has %d characters, at least %d are needed; %s", len(token), minToken, tokenHelp)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return errors.New("has a space or a character that is not printable ASCII; " + tokenHelp)
		}
	}
	return nil
}
