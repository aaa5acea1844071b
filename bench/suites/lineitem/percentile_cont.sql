SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY l_extendedprice) FROM lineitem;
