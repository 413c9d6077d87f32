// The mutants of operations and collectives: each breaks one thing in the operations or collectives that a workload is
// made of. The libraries that break it and the test that runs them read this one list. A mutant is reached where a
// workload calls what it breaks, in a way in which the break may change a number.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace assay::mutants {

struct Mutant {
  std::string_view name;  // "operation.what_is_broken"
  std::string_view what;
};

inline constexpr auto mutants = std::to_array<Mutant>({
    // ---- matrix products
    {"matmul.last_row_unwritten", "the last row of the result stays as it was"},
    {"matmul.one_element_off", "the middle element of the result has another one's size added"},
    {"matmul.last_term_missing", "sums lack their last term"},
    {"matmul.accumulate_ignored", "the result is overwritten where it is to be added to"},
    {"matmul.bias_ignored", "the bias is not added"},
    {"matmul.forward_1_percent", "products by a transposed matrix are 1% too large"},
    {"matmul.gradient_1_percent", "products of a transposed matrix, the gradients of weights, are 1% too large"},
    {"matmul.one_gradient_1_percent", "the gradients of square weights alone are 1% too large"},
    {"matmul.plain_1_percent", "products of two matrices as they are, are 1% too large"},
    {"matmul.gradient_not_a_number", "the last element of a gradient of weights is NaN"},
    {"matmul.gradient_transposed", "the gradient of a square matrix is transposed"},
    {"matmul.gradient_bf16", "fp32 gradients of weights are rounded to bf16"},
    {"matmul.bf16_inputs", "fp32 factors are rounded to bf16"},
    {"matmul.tf32_inputs", "fp32 factors are rounded to tf32"},
    {"matmul.residual_ignored", "what is to be added to a product is left out"},
    {"matmul.row_scales_ignored", "of 8 bits, rows have the scale of the first one"},
    {"matmul.column_scales_ignored", "of 8 bits, columns have the scale of the first one"},
    {"matmul.one_scale_ignored", "of 8 bits with one scale, it counts as 1"},
    {"left_products.1_percent", "products that leave multiprocessors to others are 1% too large"},
    // ---- 8 bits
    {"quantize_rows.last_row_unwritten", "the last row stays as it was"},
    {"quantize_rows.one_scale_for_all", "the scale told for each row is that of the first one"},
    {"quantize_columns.last_row_left_out", "the last row counts as zeros"},
    {"quantize_columns.not_transposed", "numbers lie as in the input where it is square"},
    {"transpose_eight_bits.last_row_left_out", "the last row counts as zeros"},
    {"transpose_eight_bits.shares_ignored", "numbers are those of rows whose scales are all alike"},
    {"transpose_eight_bits.not_transposed", "numbers lie as in the input where it is square"},
    {"eight_bits.last_scale_halved", "the scale told for the last row of a result in 8 bits is half of what it is"},
    // ---- element-wise operations
    {"add.wrong_sign", "the second term is subtracted"},
    {"add.last_row_of_one", "the last row is that of the first term alone"},
    {"multiply.one_factor", "the result is the first factor"},
    {"scale.1_percent", "the factor is 1% too large"},
    {"activation_forward.identity", "the activation function is left out"},
    {"activation_backward.identity", "the derivative of the activation function is 1"},
    {"bias_add.largest_missing", "the largest entry of the bias counts as 0"},
    {"bias_backward.last_row_missing", "the last row is not in the sum"},
    {"bias_backward.accumulate_ignored", "the sum overwrites what it is to be added to"},
    {"swiglu_forward.without_silu", "gate * up in place of silu(gate) * up"},
    {"swiglu_backward.swapped", "the two gradients change places"},
    {"swiglu_backward.product_unwritten", "silu(gate) * up is not written on the way"},
    {"bias_relu_dropout_forward.bias_ignored", "the bias is not added"},
    {"relu_dropout_backward.mask_ignored", "gradients pass where the forward's result is 0"},
    {"relu_dropout_backward.unscaled", "gradients are not divided by 1 - probability"},
    // ---- dropout
    {"dropout.half_probability", "every operation drops half of what it should"},
    {"dropout.same_mask_each_step", "masks do not depend on the step"},
    {"dropout.backward_with_other_mask", "fused backward operations make another mask than their forward"},
    // ---- embedding and position
    {"embedding_forward.rows_swapped", "rows 2 i and 2 i + 1 of the table change places"},
    {"embedding_forward.last_row_unwritten", "the last row of the result stays as it was"},
    {"embedding_backward.last_row_missing", "the last row's gradient is not added"},
    {"embedding_backward.repeats_overwrite", "of rows with the same id the last one counts alone"},
    {"rotary_table.wrong_theta", "positions turn by angles of another base"},
    {"rotary.inverse_ignored", "the backward rotates forward"},
    {"rotary.last_head_left_out", "the last head is not rotated"},
    {"rotary.one_position_late", "position i is rotated as i + 1, forward and backward"},
    // ---- norms
    {"rms_norm_forward.large_eps", "eps is 1000 times too large"},
    {"rms_norm_forward.weight_ignored", "the weight counts as 1"},
    {"add_rms_norm_forward.residual_missing", "the residual is not added"},
    {"add_rms_norm_forward.large_eps", "eps is 1000 times too large"},
    {"rms_norm_backward.projection_missing", "the term by the norm itself is left out"},
    {"rms_norm_backward.residual_ignored", "the gradient of the residual path is lost"},
    {"rms_norm_backward.weight_last_row_missing", "the weight's gradient lacks the last row"},
    {"rms_norm_backward.weight_not_a_number", "the last element of the weight's gradient is NaN"},
    {"rms_norm_backward.result_unwritten", "the forward's result is not written again"},
    {"layer_norm_forward.large_eps", "eps is 1000 times too large"},
    {"layer_norm_forward.mean_kept", "the mean is not subtracted"},
    {"layer_norm_forward.bias_ignored", "the bias counts as 0"},
    {"layer_norm_backward.projection_missing", "the terms by mean and deviation are left out"},
    {"layer_norm_backward.bias_last_row_missing", "the bias's gradient lacks the last row"},
    {"layer_norm_backward.weight_not_a_number", "the last element of the weight's gradient is NaN"},
    {"dropout_add_layer_norm_forward.residual_missing", "the residual is not added"},
    {"dropout_add_layer_norm_forward.bias_ignored", "the bias before dropout is not added"},
    {"dropout_add_layer_norm_backward.mask_ignored", "the branch's gradient is that before the mask"},
    {"dropout_add_layer_norm_backward.bias_last_row_missing", "the bias's gradient lacks the last row"},
    // ---- attention and loss
    {"softmax_forward.mask_ignored", "every key is visible"},
    {"softmax_forward.mask_off_by_one", "one key too many is visible"},
    {"softmax_forward.scale_1_percent", "the scale is 1% too large"},
    {"softmax_backward.sum_missing", "the term by the sum of probabilities is left out"},
    {"attention_forward.mask_ignored", "every key is visible"},
    {"attention_forward.mask_off_by_one", "one key too many is visible"},
    {"attention_forward.scale_1_percent", "the scale is 1% too large"},
    {"attention_forward.last_key_missing", "the last key's value counts as 0"},
    {"attention_forward.bf16_result", "fp32 results are rounded to bf16"},
    {"attention_forward.log_sum_off", "the log-sum-exp, which the backward reads, is 0.01 too large"},
    {"attention_forward.once", "with no backward, the result in the same memory is that of the first time"},
    {"attention_forward.other_key_head", "grouped queries read the values of another head"},
    {"attention_backward.scale_1_percent", "the scale is 1% too large"},
    {"attention_backward.last_query_missing", "the last query's gradient counts as 0"},
    {"attention_backward.sum_missing", "the term by the sum of probabilities is left out"},
    {"attention_backward.swapped", "the gradients of keys and values change places"},
    {"attention_backward.last_head_missing", "gradients by keys and values lack the share of a group's last head"},
    {"cross_entropy.negative_labels_counted", "a label below 0 counts as label 0"},
    {"cross_entropy.last_label_off_by_one", "the last row is given the next label"},
    {"cross_entropy.gradient_1_percent", "the gradient is 1% too large"},
    {"cross_entropy.last_gradient_0", "the last row's gradient is 0"},
    {"cross_entropy.last_loss_0", "the last row's loss is 0"},
    {"cross_entropy.first_class_ignored", "a part of the classes counts them from 0"},
    {"cross_entropy.wide_columns_ignored", "a column stands for one class where it stands for several"},
    {"cross_entropy.first_part_alone", "the log-sum-exp of all parts is that of the first one"},
    {"cross_entropy.loss_of_other_parts_counted", "a row's loss counts in parts without its label, too"},
    {"cross_entropy.gradient_of_other_parts_0", "a row has a gradient in the part with its label alone"},
    {"sum.last_missing", "the sum, which makes the loss, lacks its last term"},
    // ---- sums for the study of rounding
    {"ordered_sum.last_missing", "the sum lacks its last term"},
    {"ordered_sum.other_order", "terms are added pairwise where they are to be added in turn, and the other way round"},
    {"ordered_sum.fp32_accumulator", "a 16-bit accumulator is not rounded to"},
    {"ordered_sum.once", "the result in the same memory is that of the first time"},
    {"ordered_dot.last_missing", "the product lacks its last term"},
    {"ordered_dot.once", "the result in the same memory is that of the first time"},
    // ---- data
    {"copy.last_row_unwritten", "the last row of the copy stays as it was"},
    {"copy.truncates", "fp32 becomes bf16 by cutting bits off"},
    {"feed.batch_twice", "every second batch is the one before it once more"},
    {"feed.one_late", "every batch comes one step late"},
    {"random_integers.same_on_all_ranks", "the second half of the tokens repeats the first"},
    // ---- optimizers
    {"adamw.does_nothing", "nothing is updated"},
    {"adamw.gradients_overwritten", "before the update all gradients become 0.001, and stay so"},
    {"adamw.no_weight_decay", "weights do not decay"},
    {"adamw.no_bias_correction", "moments are used as in a late step"},
    {"adamw.beta1", "the first moment forgets twice as fast"},
    {"adamw.beta2", "the second moment forgets ten times as fast"},
    {"adamw.large_eps", "eps is 1e-3"},
    {"adamw.double_rate", "the learning rate is twice as large"},
    {"adamw.uphill", "the learning rate has the wrong sign"},
    {"adamw.twice", "the update is made twice"},
    {"adamw.range_left_out", "the last 64 elements are not updated"},
    {"adamw.moments_forgotten", "each step starts from moments of 0"},
    {"adamw.bf16_moments", "fp32 moments are rounded to bf16"},
    {"adamw.gradient_of_step_before", "from the second step on, the gradient of the step before is used"},
    {"adamw.copy_stale", "the copy that the products read is not written"},
    {"update.copy_too_early", "an update beside backward writes weights' copies while backward still reads them"},
    {"sgd.does_nothing", "nothing is updated"},
    {"sgd.double_rate", "the learning rate is twice as large"},
    {"sgd.uphill", "the learning rate has the wrong sign"},
    {"sgd.range_left_out", "the last 64 elements are not updated"},
    {"advance.stands_still", "the step number stays at 1"},
    // ---- loss scale
    {"count_nonfinite.none", "gradients that are not finite are not counted"},
    {"adamw.scale_left_in", "gradients are not divided by the loss scale"},
    {"mark_step.does_nothing", "no step is counted, and none leaves marks"},
    {"adamw.updates_all_the_same", "a step whose gradients are not finite updates"},
    {"update_loss_scale.never_shrinks", "the scale stays where gradients overflow"},
    {"update_loss_scale.nothing_skipped", "skipped steps are not counted"},
    // ---- collectives
    {"all_reduce.sum_for_average", "sums are not divided by the number of ranks"},
    {"all_reduce.max_for_sum", "the largest value in place of the sum or average"},
    {"all_reduce.last_rank_missing", "the last rank's share counts as 0"},
    {"all_reduce.first_rank_alone", "all get the first rank's share"},
    {"all_reduce.skipped_once", "every second collective leaves each rank its own share"},
    {"all_reduce.range_left_out", "the last quarter of the elements is not reduced"},
    {"all_reduce.pieces_swapped", "two collectives of one size change their results"},
    {"all_reduce.stale_result", "a collective gives the result of the one before it in the same memory"},
    {"all_reduce.too_early", "a collective sends what its memory held in the step before"},
    {"all_reduce.1_percent", "the result is 1% too large, on all ranks"},
    {"all_reduce.last_element_off", "the last element is twice as large, on all ranks"},
    {"all_reduce.one_rank_off", "the last element is twice as large on the last rank"},
    {"all_reduce.not_a_number", "the last element is NaN, on all ranks"},
    {"all_reduce.bf16", "fp32 shares are rounded to bf16"},
    {"all_reduce.send_overwritten", "out of place, what was sent becomes the result"},
    {"reduce_scatter.sum_for_average", "sums are not divided by the number of ranks"},
    {"reduce_scatter.max_for_sum", "the largest value in place of the sum or average"},
    {"reduce_scatter.first_rank_alone", "all get their part of the first rank's share"},
    {"reduce_scatter.parts_swapped", "each rank gets the next one's part"},
    {"reduce_scatter.range_left_out", "the last quarter of a part is not reduced"},
    {"reduce_scatter.last_element_off", "the last element of a part is twice as large"},
    {"reduce_scatter.one_rank_off", "the last element of the last rank's part is twice as large"},
    {"reduce_scatter.last_rank_missing", "the last rank's share counts as 0"},
    {"reduce_scatter.too_early", "a reduction sends what its memory held the last time"},
    {"reduce_scatter.stale_result", "a reduction gives the result of the one before it in the same memory"},
    {"reduce_scatter.skipped_once", "every second reduction leaves each rank its part of its own share"},
    {"reduce_scatter.pieces_swapped", "two reductions of one size change their results"},
    {"reduce_scatter.1_percent", "the result is 1% too large, on all ranks"},
    {"reduce_scatter.not_a_number", "the last element of a part is NaN"},
    {"reduce_scatter.bf16", "fp32 shares are rounded to bf16"},
    {"all_gather.parts_swapped", "the first two parts change places, on all ranks"},
    {"all_gather.last_part_stale", "the last rank's part is gathered nowhere but there"},
    {"all_gather.last_part_old", "the last rank's part is what it was before, there too"},
    {"all_gather.last_element_off", "the last element is twice as large, on all ranks"},
    {"all_gather.one_rank_off", "the last element is twice as large on the last rank"},
    {"all_gather.first_part_everywhere", "all parts are the first rank's"},
    {"all_gather.range_left_out", "the last quarter of each other rank's part is not gathered"},
    {"all_gather.too_early", "a rank sends what its part held the last time"},
    {"all_gather.stale_result", "a gathering gives the result of the one before it in the same memory"},
    {"all_gather.skipped_once", "every second gathering leaves what was there"},
    {"all_gather.own_part_unwritten", "out of place, a rank's own part stays what it was"},
    {"all_gather.not_a_number", "the last element is NaN, on all ranks"},
    {"all_gather.bf16", "fp32 parts are rounded to bf16"},
    {"wait.too_early", "a wait returns before the collective is carried out, which the next wait does"},
    {"wait.at_the_last_moment", "a collective is carried out when it is waited for: no mistake, and nobody may notice"},
    {"series.cut_short", "of collectives in a row the first alone takes place"},
    {"broadcast.wrong_root", "the next rank's data are sent"},
    {"broadcast.does_nothing", "each rank keeps its own data"},
    {"broadcast.range_left_out", "the last quarter is not sent"},
    {"all_to_all.parts_swapped", "the first two parts change places, on all ranks"},
    {"all_to_all.keeps_its_own", "each rank has what it sent itself"},
    {"all_to_all.last_part_stale", "what the last rank sends arrives nowhere but there"},
    {"all_to_all.last_element_off", "the last element is twice as large, on all ranks"},
    {"all_to_all.one_rank_off", "the last element is twice as large on the last rank"},
    {"all_to_all.range_left_out", "the last quarter of what other ranks send does not arrive"},
    {"all_to_all.too_early", "a rank sends what its memory held the last time"},
    {"all_to_all.stale_result", "an exchange gives the result of the one before it in the same memory"},
    {"all_to_all.last_rank_missing", "what the last rank sends counts as 0"},
    {"all_to_all.not_a_number", "the last element is NaN, on all ranks"},
    {"all_to_all.bf16", "fp32 is rounded to bf16 on the way"},
    {"send_receive.backwards", "each rank sends to the one that it is to receive from"},
    {"send_receive.keeps_its_own", "each rank has what it sent itself"},
    {"send_receive.does_nothing", "what is sent arrives nowhere"},
    {"send_receive.last_element_off", "the last element is twice as large, on all ranks"},
});

// Classes of mutants of sources, whose names begin with them: sources/CLASS.mutants.
inline constexpr auto source_classes =
    std::to_array<std::string_view>({"model", "data", "optimizer", "schedule", "measurement"});
constexpr bool is_of_sources(std::string_view name) {
  for (const std::string_view one : source_classes)
    if (name.substr(0, name.find('.')) == one) return true;
  return false;
}

// The place of a name in the list. A name that is not in it does not compile.
class MutantId {
 public:
  consteval MutantId(const char* name) : index_(place_of(name)) {}
  constexpr std::size_t index() const { return index_; }

 private:
  static consteval std::size_t place_of(std::string_view name) {
    for (std::size_t i = 0; i < mutants.size(); ++i)
      if (mutants[i].name == name) return i;
    throw "no such mutant";
  }
  std::size_t index_;
};

}  // namespace assay::mutants
