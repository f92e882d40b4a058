package pumpkin

import (
	"crypto/rand"
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
	tokenHelp = "make one with: openssl rand -base64 32"
)

// AdminToken finds the token for Config.Token: in the file if a path is given (its content without the line's end), else
// env if it is not empty, which is the value of the variable TokenEnv, else a random one, which the program must print for
// its operator (generated is true). A file that cannot be read or a token that is too weak is an error, never a reason to
// fall back on another source. Errors do not contain the token.
func AdminToken(file, env string) (token string, generated bool, err error) {
	switch {
	case file != "":
		token, err = readToken(file)
		if err != nil {
			return "", false, fmt.Errorf("pumpkin: admin token: %w; name a readable file in pumpkin.admin.token_file", err)
		}
		if err := checkToken(token); err != nil {
			return "", false, fmt.Errorf("pumpkin: admin token in %s %w", file, err)
		}
		return token, false, nil
	case env != "":
		if err := checkToken(env); err != nil {
			return "", false, fmt.Errorf("pumpkin: admin token in %s %w", TokenEnv, err)
		}
		return env, false, nil
	}
	return rand.Text() + rand.Text(), true, nil // 52 characters, 256 bits
}

// readToken reads a file of one line.
func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const enough = 4 << 10 // bounds a path that leads to a device or a log
	content, err := io.ReadAll(io.LimitReader(f, enough+1))
	if err != nil {
		return "", err
	}
	if len(content) > enough {
		return "", fmt.Errorf("%s is longer than a token", file)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
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
