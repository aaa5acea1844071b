SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY l_extendedprice), percentile_cont(0.5) WITHIN GROUP (ORDER BY l_discount), percentile_cont(0.5) WITHIN GROUP (ORDER BY l_quantity) FROM lineitem;
