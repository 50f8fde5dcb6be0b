(* Every theorem with what it rests on: `Closed under the global context` is no axiom at all; the
   others name the axioms of Coq's real numbers. *)
From Exactformer Require Batch Binary64 ChainReduction Checker Clusters DepthOneReduction
  DeviceAttention Enter GatedResidual GlobalEvaluation LogarithmicChecked LogarithmicDevice
  LogarithmicEvaluation LogarithmicRun MachineChecked Machines MapTables MarginSound NextState
  Ranks ReductionMask Resets Rounding RoutedSums RowsOfTexts RunningModel Scaling Scan
  SomeDevice SpanWords SpansInOrder Speculate Strahler TouchingClusters TypedAttention Units
  UnitsReceive.

Goal True. idtac "Lemma 1, reduction mask: ReductionMask.mask_is_deepest_spans". Abort.
Print Assumptions ReductionMask.mask_is_deepest_spans.
Goal True. idtac "Lemma 2, clusters: Clusters.by_number_is_by_run". Abort.
Print Assumptions Clusters.by_number_is_by_run.
Goal True. idtac "ranks restart in each cluster: Ranks.ranks_position_by_position". Abort.
Print Assumptions Ranks.ranks_position_by_position.
Goal True. idtac "Lemma 3, typed attention: a bag: TypedAttention.received_is_a_bag". Abort.
Print Assumptions TypedAttention.received_is_a_bag.
Goal True. idtac "Lemma 3, typed attention: empty positions receive nothing: TypedAttention.received_by_zero". Abort.
Print Assumptions TypedAttention.received_by_zero.
Goal True. idtac "Lemma 3, typed attention: empty positions send nothing: TypedAttention.received_from_zero". Abort.
Print Assumptions TypedAttention.received_from_zero.
Goal True. idtac "Lemma 5, gated residual: GatedResidual.outcomes_by_runs". Abort.
Print Assumptions GatedResidual.outcomes_by_runs.
Goal True. idtac "Theorem 1, one iteration on sequences: DepthOneReduction.outcomes_forest". Abort.
Print Assumptions DepthOneReduction.outcomes_forest.
Goal True. idtac "Theorem 1, one iteration on expressions: NextState.next_state". Abort.
Print Assumptions NextState.next_state.
Goal True. idtac "what each position sees is a case: NextState.every_sight_is_a_case". Abort.
Print Assumptions NextState.every_sight_is_a_case.
Goal True. idtac "batches: Batch.run_is_alone". Abort.
Print Assumptions Batch.run_is_alone.
Goal True. idtac "Theorem 2 (T1), the whole run: GlobalEvaluation.global_evaluation". Abort.
Print Assumptions GlobalEvaluation.global_evaluation.
Goal True. idtac "T2, checked weights are exact, dense vectors included: Checker.checked_weights_are_exact". Abort.
Print Assumptions Checker.checked_weights_are_exact.
Goal True. idtac "T2, without dense vectors: Checker.checked_rows_are_exact". Abort.
Print Assumptions Checker.checked_rows_are_exact.
Goal True. idtac "scaling weights to whole numbers: Scaling.scaling_is_exact". Abort.
Print Assumptions Scaling.scaling_is_exact.
Goal True. idtac "T3, any sum: Rounding.sumR_error". Abort.
Print Assumptions Rounding.sumR_error.
Goal True. idtac "T3, the computed bound: Rounding.gamma_bound". Abort.
Print Assumptions Rounding.gamma_bound.
Goal True. idtac "T3, binary64 errs relatively: Binary64.summed_near". Abort.
Print Assumptions Binary64.summed_near.
Goal True. idtac "T3, nothing overflows: Binary64.nothing_overflows". Abort.
Print Assumptions Binary64.nothing_overflows.
Goal True. idtac "T3, the perceptron keeps its signs: MarginSound.rounding_keeps_signs". Abort.
Print Assumptions MarginSound.rounding_keeps_signs.
Goal True. idtac "T4, whole sums are exact: RoutedSums.whole_sums_are_exact". Abort.
Print Assumptions RoutedSums.whole_sums_are_exact.
Goal True. idtac "T4, attention on a device: DeviceAttention.device_received_exact". Abort.
Print Assumptions DeviceAttention.device_received_exact.
Goal True. idtac "T1 to T4: the running model: RunningModel.running_model_is_exact_in_every_format". Abort.
Print Assumptions RunningModel.running_model_is_exact_in_every_format.
Goal True. idtac "T5, max: Units.max_right". Abort.
Print Assumptions Units.max_right.
Goal True. idtac "T5, min: Units.min_right". Abort.
Print Assumptions Units.min_right.
Goal True. idtac "T5, nor: Units.nor_right". Abort.
Print Assumptions Units.nor_right.
Goal True. idtac "T5, nand: Units.nand_right". Abort.
Print Assumptions Units.nand_right.
Goal True. idtac "T5, complement: Units.complement_right". Abort.
Print Assumptions Units.complement_right.
Goal True. idtac "T5, median: Units.median_right". Abort.
Print Assumptions Units.median_right.
Goal True. idtac "T5, median mean: Units.median_mean_right". Abort.
Print Assumptions Units.median_mean_right.
Goal True. idtac "T5, sum: Units.sum_right". Abort.
Print Assumptions Units.sum_right.
Goal True. idtac "T5, saturating: Units.saturating_right". Abort.
Print Assumptions Units.saturating_right.
Goal True. idtac "T5, first: Units.first_right". Abort.
Print Assumptions Units.first_right.
Goal True. idtac "T5, difference: Units.difference_right". Abort.
Print Assumptions Units.difference_right.
Goal True. idtac "T5, implies: Units.implies_right". Abort.
Print Assumptions Units.implies_right.
Goal True. idtac "T5, what a unit adds up: UnitsReceive.unit_sum_received". Abort.
Print Assumptions UnitsReceive.unit_sum_received.
Goal True. idtac "T5, the operator receives itself: UnitsReceive.operator_received". Abort.
Print Assumptions UnitsReceive.operator_received.
Goal True. idtac "T6, at most as many iterations as levels: Strahler.strahler_le_depth". Abort.
Print Assumptions Strahler.strahler_le_depth.
Goal True. idtac "T6, at most 1 + log2 of the values: Strahler.strahler_logarithmic". Abort.
Print Assumptions Strahler.strahler_logarithmic.
Goal True. idtac "T6, at most log2 of the values without unary operators: Strahler.strahler_logarithm". Abort.
Print Assumptions Strahler.strahler_logarithm.
Goal True. idtac "T6, one iteration keeps the value: Speculate.eval_next". Abort.
Print Assumptions Speculate.eval_next.
Goal True. idtac "T6, one iteration takes one off the number: Speculate.strahler_next". Abort.
Print Assumptions Speculate.strahler_next.
Goal True. idtac "T6, no fewer iterations than the number suffice: Speculate.iterations_are_strahler". Abort.
Print Assumptions Speculate.iterations_are_strahler.
Goal True. idtac "T6, and these leave the value: Speculate.value_is_left". Abort.
Print Assumptions Speculate.value_is_left.
Goal True. idtac "T6, composition of tables is associative: Scan.gather_associative". Abort.
Print Assumptions Scan.gather_associative.
Goal True. idtac "T6, maps composed in any grouping: Scan.tables_in_any_grouping". Abort.
Print Assumptions Scan.tables_in_any_grouping.
Goal True. idtac "T6, the scan in pairs is the scan: Scan.scan_from_right_is_the_scan". Abort.
Print Assumptions Scan.scan_from_right_is_the_scan.
Goal True. idtac "T6, the scan evaluates the chains of a batch: SpansInOrder.scan_evaluates_chains". Abort.
Print Assumptions SpansInOrder.scan_evaluates_chains.
Goal True. idtac "T6, and so does that of tables: MapTables.scan_of_tables". Abort.
Print Assumptions MapTables.scan_of_tables.
Goal True. idtac "T6, the outermost chains are selected: SpansInOrder.outermost_are_the_chains". Abort.
Print Assumptions SpansInOrder.outermost_are_the_chains.
Goal True. idtac "T6, scan, select and write are one iteration: SpansInOrder.iteration_is_next". Abort.
Print Assumptions SpansInOrder.iteration_is_next.
Goal True. idtac "T6, the entries of a batch are those of its spans in order: Enter.enter_gives_the_spans". Abort.
Print Assumptions Enter.enter_gives_the_spans.
Goal True. idtac "T6, and these are words with holes: SpanWords.spans_are_words". Abort.
Print Assumptions SpanWords.spans_are_words.
Goal True. idtac "T6, spans one after the other: TouchingClusters.touching_clusters". Abort.
Print Assumptions TouchingClusters.touching_clusters.
Goal True. idtac "T6, every trial is a case of the check: SpanWords.every_trial_is_a_case". Abort.
Print Assumptions SpanWords.every_trial_is_a_case.
Goal True. idtac "T6, F of the weights is F of the algebra: SpanWords.speculated_is_F". Abort.
Print Assumptions SpanWords.speculated_is_F.
Goal True. idtac "T6, an outermost chain becomes its value: ChainReduction.becomes_value". Abort.
Print Assumptions ChainReduction.becomes_value.
Goal True. idtac "T6, one iteration of a batch of states: LogarithmicEvaluation.next_batch". Abort.
Print Assumptions LogarithmicEvaluation.next_batch.
Goal True. idtac "T6, k iterations: LogarithmicEvaluation.logarithmic_evaluation". Abort.
Print Assumptions LogarithmicEvaluation.logarithmic_evaluation.
Goal True. idtac "T6, the whole run: LogarithmicRun.run_log_evaluates". Abort.
Print Assumptions LogarithmicRun.run_log_evaluates.
Goal True. idtac "T6 with T2, checked weights are exact, dense vectors included: LogarithmicChecked.checked_weights_are_exact_in_log". Abort.
Print Assumptions LogarithmicChecked.checked_weights_are_exact_in_log.
Goal True. idtac "T6 with T2, the whole run: LogarithmicChecked.checked_run_is_exact_in_log". Abort.
Print Assumptions LogarithmicChecked.checked_run_is_exact_in_log.
Goal True. idtac "T6 with T2, without dense vectors: LogarithmicChecked.checked_rows_are_exact_in_log". Abort.
Print Assumptions LogarithmicChecked.checked_rows_are_exact_in_log.
Goal True. idtac "T6 with T3 and T4, trials on a device: LogarithmicDevice.trials_are_exact". Abort.
Print Assumptions LogarithmicDevice.trials_are_exact.
Goal True. idtac "machines, maps composed in any grouping lead where reading the text does: Resets.a_text_in_any_grouping". Abort.
Print Assumptions Resets.a_text_in_any_grouping.
Goal True. idtac "machines, texts of a batch do not mix: Resets.texts_do_not_mix". Abort.
Print Assumptions Resets.texts_do_not_mix.
Goal True. idtac "machines, each token is a row of its own: RowsOfTexts.numbered_text". Abort.
Print Assumptions RowsOfTexts.numbered_text.
Goal True. idtac "machines, the layer reads one symbol after the other: RowsOfTexts.layer_reads_texts". Abort.
Print Assumptions RowsOfTexts.layer_reads_texts.
Goal True. idtac "machines, the product with an answer for each symbol: Machines.product_answers_each". Abort.
Print Assumptions Machines.product_answers_each.
Goal True. idtac "machines, the product with an answer at the end: Machines.product_answers_at_the_end". Abort.
Print Assumptions Machines.product_answers_at_the_end.
Goal True. idtac "machines, checked weights are exact: MachineChecked.checked_machine_is_exact". Abort.
Print Assumptions MachineChecked.checked_machine_is_exact.
Goal True. idtac "machines, with rounding in binary64: MachineChecked.running_machine_is_exact". Abort.
Print Assumptions MachineChecked.running_machine_is_exact.
Goal True. idtac "T1 to T4, there is a run: SomeDevice.some_run". Abort.
Print Assumptions SomeDevice.some_run.
Goal True. idtac "machines, there is a device that tries each row: SomeDevice.nearest_machine_is_exact". Abort.
Print Assumptions SomeDevice.nearest_machine_is_exact.
