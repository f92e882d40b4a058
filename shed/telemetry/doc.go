// Package telemetry answers: what can a graph and an alert see of a Shedder?
//
// [Metrics] is a Prometheus collector and a [shed.Observer] in one. What the Shedder counts itself (decisions by rule and
// by reason, limit, in flight, waiting, pressure) is read from its Status when Prometheus asks; what only events tell (how
// long requests waited and ran) is gathered in histograms as it happens.
//
//	metrics := telemetry.New()
//	s, err := shed.New(shed.Config{Observer: metrics})
//	...
//	metrics.Watch(s)
//	prometheus.MustRegister(metrics)
//
// # Metrics
//
//	spillway_admitted_total{route}                       requests that got a permit
//	spillway_refused_total{route, reason, rule}          refused requests
//	spillway_exempt_total                                requests to exempt routes that passed
//	spillway_gone_total                                  callers that left before they were answered
//	spillway_rule_decisions_total{rule, decision}        admitted, delayed, refused; would_refuse by rules that only watch
//	spillway_rule_over_soft_total{rule}                  admitted above the soft rate of a burst
//	spillway_rule_units_total{rule, unit}                charged, of other units than requests
//	spillway_rule_paced_total{rule}                      how often something had to wait for such a rule
//	spillway_rule_settled_total{rule}                    given back, for work that came to less
//	spillway_wait_seconds{route}                         how long admitted requests waited
//	spillway_service_seconds{route, outcome}             how long permits were held
//	spillway_typical_service_seconds                     what successful work takes typically
//	spillway_limit, spillway_limit_estimate              how many may run at once; and before health lowers it
//	spillway_in_flight                                   requests under the limit
//	spillway_waiting{priority}, spillway_queue_capacity  requests in the line, and how many may be
//	spillway_newest_first{priority}                      1 while refusals of that priority last
//	spillway_parked                                      requests that wait for a delaying rule's turn
//	spillway_streams, spillway_long_lived_in_use{route}  streams without and with a budget of their own
//	spillway_long_lived_max{route}                       that budget
//	spillway_reserved                                    places of the limit that only the critical priorities may use
//	spillway_would_refuse_total{reason}                  what a shadow would have refused
//	spillway_route_in_flight{route}                      what runs under the limit, by route
//	spillway_route_limit{route,why}                      the bound of a route that is held back: why is slow or health
//	spillway_pressure{signal}                            0 to 1; missing while a signal has no opinion, as in the warm-up
//	spillway_pressure_max                                the highest of those that count
//	spillway_signal_state{signal, state}                 1 for the state a signal is in
//	spillway_signal_discarded_total{signal}              samples of a signal that could not be used
//	spillway_signal_transitions_total{signal}            changes of its state
//	spillway_store_seconds{source}                       how long a store outside this process took, by who decided: redis,
//	                                                     lease, async, cache; local, open, closed while it is down; none
//	spillway_store_up                                    1 while that store decides; 0 while it is down or faulty
//	spillway_store_state_changes_total                   how often that changed
//	spillway_store_instances                             what a limit is divided by where an instance decides alone
//	spillway_store_decisions_total{source}               its decisions, by who made them
//	spillway_store_home_up{region}                       1 while the store of all regions decides
//	spillway_store_borrowed_total{region}                decisions that were admitted with what it has
//	spillway_store_second_tries_total                    decisions that were asked about another sub-bucket
//	spillway_store_merges_total{result}                  messages in which counts were merged: done, failed
//	spillway_store_merged_keys                           balances that are counted here
//	spillway_store_errors_total{kind}                    its failed calls: unknown (may have charged), not_executed,
//	                                                     out_of_memory, misconfigured
//	spillway_memory_keys, spillway_memory_keys_max       balances in the store of this process, and how many there can be
//	spillway_memory_overflowed_total                     charges to a shared balance, because that store was full
//	spillway_memory_dropped_total                        balances that were full again
//	spillway_memory_log_entries                          single charges that sliding logs have room for
//	spillway_memory_log_entries_max                      how many they can remember before they join times
//	spillway_bodies_cut_total                            requests that ran and whose long body then came too slowly
//	spillway_refund_errors_total                         refunds that the store could not make
//	spillway_answers_info{rate_limit,legacy,html}        1, with what clients are told beside the decisions
//	spillway_config_reloads_total{result}                new configurations since the start: applied, failed
//	spillway_config_ok                                   0 while the newest configuration is one that was refused
//	spillway_pumpkin_items{severity,origin}    what the public sees, with WatchPumpkin
//	spillway_pumpkin_scheduled                 items that wait for their start
//	spillway_pumpkin_ending_soon               items of which four fifths of the time are over
//	spillway_pumpkin_by_file                   1 while the break-glass file rules
//	spillway_pumpkin_unshared                  writes that the shared store does not have yet
//	spillway_pumpkin_store_reachable           1 while that store can be asked
//	spillway_pumpkin_store_failures_total      questions to it that had no answer
//	spillway_pumpkin_store_reseeded_total      states stored again because it had lost something
//	spillway_pumpkin_auto_share{rule}          how much of its text a rule of automation has off: 1 up, 0 down
//	spillway_pumpkin_auto_latched{rule}        1 while it has gone up too often and waits for a person
//	spillway_pumpkin_auto_votes{rule}          instances that want it up
//	spillway_pumpkin_auto_changes_total{rule,change} items raised and lowered by this instance
//	spillway_pumpkin_polls_total{answer}       polls answered: full or not_modified
//	spillway_pumpkin_writes_total              writes that were made
//	spillway_pumpkin_admin_failures_total      admin requests without a right token, name or origin
//	spillway_pumpkin_audit_failures_total      records that the audit file did not take
//
// examples/monitoring has alert rules for them, and docs/production.md what to do. Worth a page are refusals for lack of room that
// last (the reasons overloaded, queue_full, wait_expired, displaced and deadline). Worth a look are any pressure above 0.5 for
// minutes, and rules whose refused share jumps.
//
// Labels are bounded: names of configured rules and routes, reasons, outcomes and signals. A client's name or key is never
// a label, and beyond [Config].MaxRoutes routes share one label, whatever a program calls them.
//
// # Traces and logs
//
// [Spans] writes each decision to the trace span of the caller, and [Log] writes the first of each kind of refusal to a
// slog.Logger and counts the rest of them. Both are Observers; [shed.Observers] takes several:
//
//	shed.Config{Observer: shed.Observers(metrics, telemetry.Spans{}, log)}
package telemetry
