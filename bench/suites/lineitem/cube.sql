SELECT l_shipmode, l_returnflag, l_linenumber, count(*), sum(l_quantity) FROM lineitem GROUP BY CUBE (l_shipmode, l_returnflag, l_linenumber);
