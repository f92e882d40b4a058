// Package page answers the question: what does a report look like? It has the head with the stylesheet, and the charts. A page is one
// file that loads nothing: no script, no font, no picture.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"strings"
)

//go:embed style.css
var style string

// head begins every page; what follows it in the text of New is the body.
const head = `{{define "head"}}<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.}}</title>
<style>
{{style}}</style>{{end}}`

// New makes a page of its text, which is part of the program and panics with a mistake. It begins with {{template "head" TITLE}}, and has
// functions of its own beside "lower", the class of a verdict's status.
func New(text string, functions template.FuncMap) *template.Template {
	all := template.FuncMap{
		"style": func() template.CSS { return template.CSS(style) },
		"lower": func(status any) string { return strings.ToLower(fmt.Sprint(status)) },
	}
	maps.Copy(all, functions)
	return template.Must(template.Must(template.New("page").Funcs(all).Parse(head)).Parse(text))
}
